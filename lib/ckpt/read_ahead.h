// Reads tensors while the caller writes what was read before, so that a conversion takes the time
// of the slower of the two.
#pragma once

#include <functional>
#include <span>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// Calls `sink` on this thread with the bytes of the tensors, one tensor after the other and each in
// order, in blocks of at most 4 MiB; a tensor without elements is one empty block. A thread reads up
// to four blocks ahead. Errors: those of reading, when all that was read before is through, and
// those of `sink`.
void stream_ahead(std::span<const NamedTensor* const> tensors,
                  const std::function<void(const NamedTensor&, ConstMemory)>& sink);

}  // namespace gxp
