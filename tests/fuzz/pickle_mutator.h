// Alters pickles opcode by opcode, so that what comes out is still a program of the stack machine:
// random bytes seldom get beyond the first wrong length.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gxp {

// One to four alterations: an opcode is left out, repeated, moved, or replaced by another one with
// the same kind of argument; a run of opcodes is copied to elsewhere; a text gets the text of
// another opcode, a number a value at a limit. Lengths are written to fit. "" if `pickle` has an
// opcode that is not known, or ends in the middle of one. The same for the same seed.
std::string mutate_pickle(std::string_view pickle, uint32_t seed);

}  // namespace gxp
