// The directories of a run's checkpoints: what they are called, and which of them are complete.
//
//   step-00000010             complete, if it has a manifest
//   .step-00000010.partial    being written, or about to be removed
//   .replaced-step-00000010   complete too: an earlier one of that step, moved aside for a new one
//                             where names cannot be exchanged. It counts until there is a complete
//                             step-00000010.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

std::string step_name(uint64_t step);                             // "step-00000010"
std::string partial_name(uint64_t step);                          // ".step-00000010.partial"
std::string partial_path(const std::string& dir, uint64_t step);  // "DIR/.step-00000010.partial"
bool is_partial_name(std::string_view name);
// "shard-00000-of-00002.bin": what one of `files` ranks has written.
// `frozen`: "frozen-00000-of-00002.bin".
std::string data_file_name(int rank, int files, bool frozen = false);
// Whether it is a name of any of the three kinds.
bool is_step_entry(std::string_view name);

// Whether `directory` has a manifest; false if there is no such directory. kIo if this cannot be
// determined: no permission, a failing disk, a dangling link.
bool has_manifest(const std::string& directory);

// The steps that `dir` holds complete checkpoints of, rising. Empty only if there is no such
// directory or no checkpoint in it. kIo if `dir` or one of its steps cannot be looked into: it may
// be the newest one, and who took it for absent would start again, or at an older step.
std::vector<uint64_t> complete_steps(const std::string& dir);

// The path of the complete checkpoint of `step`: "DIR/step-00000010", or the one that was moved
// aside.
std::string step_path(const std::string& dir, uint64_t step);

}  // namespace gxp
