// A tensor's elements in another order or width, computed while they are read: formats store one
// matrix transposed against each other, with its rows in another order, or a norm in a wider type.
//
// A view keeps the names of its source tensors, and reads them when it is read. Errors and
// threads are those of the source.
#pragma once

#include <cstdint>
#include <functional>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// The matrix with its sizes exchanged. Cost: each block of n rows that is read takes a short read
// of n elements for each row of the source, and a buffer of sixteen of those; nothing is kept, so
// that several threads may read several blocks.
NamedTensor transposed(NamedTensor matrix);

// Row i of the result is row `source_row(i)` of the tensor, which has at least one dimension.
NamedTensor with_rows(NamedTensor tensor, std::function<uint64_t(uint64_t)> source_row);

// The rows of heads of `head_size` channels, an even number that divides the rows, where the
// channels that rotary positions turn together are neighbours (Meta's Llama, GGUF) or lie half a
// head apart (Hugging Face, gxp), in the order `to` from the other one.
enum class RotaryRows : uint8_t { kPairs, kHalves };
NamedTensor with_rotary_rows(NamedTensor tensor, uint64_t head_size, RotaryRows to);

// The rows of heads that have `parts` parts of `head_size` rows each: in the order of parts, each
// with its rows of all heads, from that of heads, or the other way round.
enum class HeadRows : uint8_t { kByPart, kByHead };
struct HeadParts {
  uint64_t heads, parts, head_size;
};
NamedTensor with_head_rows(NamedTensor tensor, const HeadParts& sizes, HeadRows to);

// An F32 tensor with `number` added to each element, rounded to F32.
NamedTensor plus(NamedTensor tensor, float number);

// The elements of a BF16 or F16 tensor as F32, which holds all of them.
NamedTensor widened(NamedTensor tensor);
// An F32 tensor as the `dtype` (BF16 or F16) that it was widened from. kCorrupt, when it is read:
// an element does not fit, so that it was not.
NamedTensor narrowed(NamedTensor tensor, StorageDType dtype);

}  // namespace gxp
