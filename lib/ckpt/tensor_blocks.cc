#include "lib/ckpt/tensor_blocks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "lib/base/error.h"

namespace gxp {
namespace {

using Sizes = std::vector<uint64_t>;

const Sizes& sizes_of(const TensorBlock& block) { return block.part.info.shape; }

std::string in_words(const TensorBlock& block) {
  return fmt::format("the block at ({}) of shape ({})", fmt::join(block.offsets, ", "),
                     fmt::join(sizes_of(block), ", "));
}

bool overlap(const TensorBlock& a, const TensorBlock& b) {
  for (size_t d = 0; d < a.offsets.size(); ++d) {
    if (a.offsets[d] >= b.offsets[d] + sizes_of(b)[d]) return false;
    if (b.offsets[d] >= a.offsets[d] + sizes_of(a)[d]) return false;
  }
  return true;
}

void check_inside(const TensorBlock& block, const Sizes& shape, const std::string& where) {
  for (size_t d = 0; d < shape.size(); ++d) {
    const uint64_t begin = block.offsets[d];
    if (begin > shape[d] || sizes_of(block)[d] > shape[d] - begin)
      fail(ErrorKind::kCorrupt, "{}: {} reaches out of the shape ({})", where, in_words(block),
           fmt::join(shape, ", "));
  }
}

// `blocks` are sorted, not empty and inside: without overlaps they have as many elements as the
// whole if and only if there is no hole.
void check_blocks_cover(const std::vector<TensorBlock>& blocks, const Sizes& shape,
                        const std::string& where) {
  uint64_t covered = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    covered += blocks[i].part.info.count();
    const uint64_t end = shape.empty() ? 1 : blocks[i].offsets[0] + sizes_of(blocks[i])[0];
    for (size_t k = i + 1; k < blocks.size(); ++k) {
      if (!shape.empty() && blocks[k].offsets[0] >= end) break;
      if (overlap(blocks[i], blocks[k]))
        fail(ErrorKind::kCorrupt, "{}: {} and {} overlap", where, in_words(blocks[i]),
             in_words(blocks[k]));
    }
  }
  const uint64_t count = checked_count(shape).value();
  if (covered != count)
    fail(ErrorKind::kCorrupt, "{}: the blocks have {} of the {} elements of shape ({})", where,
         covered, count, fmt::join(shape, ", "));
}

// Elements that follow each other in a block and in the whole.
struct Run {
  uint64_t begin = 0;  // in the block
  uint64_t count = 0;
};

// The run of `block` that begins with the element at `at`; empty if the block lacks that.
Run find_run(const TensorBlock& block, const Sizes& at, const Sizes& shape) {
  Run run{0, 1};
  uint64_t stride = 1;     // of dimension d in the block
  bool contiguous = true;  // all inner dimensions are whole in the block
  for (size_t d = shape.size(); d-- > 0;) {
    const uint64_t size = sizes_of(block)[d];
    if (at[d] < block.offsets[d] || at[d] - block.offsets[d] >= size) return {};
    const uint64_t place = at[d] - block.offsets[d];
    run.begin += place * stride;
    if (contiguous) run.count = size * stride - run.begin;
    contiguous = contiguous && size == shape[d];
    stride *= size;
  }
  return run;
}

Sizes coordinates(uint64_t element, const Sizes& shape) {
  Sizes at(shape.size());
  for (size_t d = shape.size(); d-- > 0; element /= shape[d]) at[d] = element % shape[d];
  return at;
}

void read_blocks(const std::vector<TensorBlock>& blocks, const Sizes& shape, uint64_t begin,
                 Memory out) {
  const size_t element = size_of(blocks.front().part.info.dtype);
  size_t last = 0;  // most runs are in the block of the run before, or in the next
  for (size_t done = 0; done < out.bytes;) {
    const Sizes at = coordinates(begin + done / element, shape);
    Run run;
    for (size_t tried = 0; run.count == 0 && tried < blocks.size(); ++tried) {
      if (tried > 0) last = (last + 1) % blocks.size();
      run = find_run(blocks[last], at, shape);
    }
    GXP_ASSERT(run.count > 0);  // join_blocks() has seen that they cover all
    const auto bytes = size_t(std::min<uint64_t>(run.count * element, out.bytes - done));
    blocks[last].part.read(run.begin, out.slice(done, bytes));
    done += bytes;
  }
}

}  // namespace

std::vector<uint64_t> shape_around(const std::vector<TensorBlock>& blocks,
                                   const std::string& where) {
  Sizes shape(blocks.front().offsets.size(), 0);
  for (const TensorBlock& block : blocks) {
    if (block.offsets.size() != shape.size() || sizes_of(block).size() != shape.size())
      fail(ErrorKind::kCorrupt, "{}: {} has not {} dimensions as others have", where,
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
    fail(ErrorKind::kCorrupt, "{}: ({}) is no shape of the blocks", where, fmt::join(shape, ", "));
  for (const TensorBlock& block : blocks) {
    if (block.part.info.dtype != info.dtype)
      fail(ErrorKind::kCorrupt, "{}: blocks of {} and of {}", where, to_string(info.dtype),
           to_string(block.part.info.dtype));
    check_inside(block, shape, where);
  }
  std::erase_if(blocks, [](const TensorBlock& block) { return block.part.info.count() == 0; });
  std::ranges::sort(blocks, {}, &TensorBlock::offsets);
  check_blocks_cover(blocks, shape, where);
  info.shape = shape;
  return {std::move(info),
          [blocks = std::make_shared<const std::vector<TensorBlock>>(std::move(blocks)),
           shape = std::move(shape)](uint64_t begin, Memory out) {
            read_blocks(*blocks, shape, begin, out);  // owners: the copies of this reader
          }};
}

}  // namespace gxp
