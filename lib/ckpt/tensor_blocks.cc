#include "lib/ckpt/tensor_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/tensor_boxes.h"

namespace gxp {
namespace {

using Sizes = std::vector<uint64_t>;

const Sizes& sizes_of(const TensorBlock& block) { return block.part.info.shape; }

std::string in_words(const TensorBlock& block) {
  return fmt::format("the block at ({}) of shape ({})", joined(block.offsets, ", "),
                     joined(sizes_of(block), ", "));
}

}  // namespace

std::vector<uint64_t> shape_around(const std::vector<TensorBlock>& blocks,
                                   const std::string& where) {
  Sizes shape(blocks.front().offsets.size(), 0);
  for (const TensorBlock& block : blocks) {
    if (block.offsets.size() != shape.size() || sizes_of(block).size() != shape.size())
      fail(ErrorKind::kCorrupt, "{}: {} does not have {} dimensions like the others", where,
           in_words(block), shape.size());
    for (size_t d = 0; d < shape.size(); ++d) {
      uint64_t end = 0;
      if (__builtin_add_overflow(block.offsets[d], sizes_of(block)[d], &end))
        fail(ErrorKind::kCorrupt, "{}: {} ends beyond 64 bits", where, in_words(block));
      shape[d] = std::max(shape[d], end);
    }
  }
  return shape;
}

NamedTensor join_blocks(std::vector<TensorBlock> blocks, std::vector<uint64_t> shape,
                        const std::string& where) {
  TensorInfo info = blocks.front().part.info;
  (void)shape_around(blocks, where);
  const auto count = checked_count(shape);
  if (blocks.front().offsets.size() != shape.size() || !count ||
      *count > UINT64_MAX / size_of(info.dtype))
    fail(ErrorKind::kCorrupt, "{}: the blocks do not fit the shape ({})", where,
         joined(shape, ", "));
  std::vector<TensorBox> boxes;
  std::vector<BoxPart> parts;
  uint64_t stored = 0;
  for (TensorBlock& block : blocks) {
    if (block.part.info.dtype != info.dtype)
      fail(ErrorKind::kCorrupt, "{}: blocks have different types, {} and {}", where,
           to_string(info.dtype), to_string(block.part.info.dtype));
    if (__builtin_add_overflow(stored, block.part.info.count(), &stored)) stored = UINT64_MAX;
    boxes.push_back({std::move(block.offsets), sizes_of(block)});
    parts.push_back({boxes.back(), std::move(block.part)});
  }
  if (stored < *count)
    fail(ErrorKind::kCorrupt, "{}: the blocks have {} of the {} elements of shape ({})", where,
         stored, *count, joined(shape, ", "));
  check_tiling(shape, boxes, where);
  info.shape = std::move(shape);
  return join_boxes(std::move(info), std::move(parts));
}

}  // namespace gxp
