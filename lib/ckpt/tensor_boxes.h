// A tensor in parts that several ranks have written: boxes, each with a tensor of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// Along axis k the elements from offsets[k] on, sizes[k] of them.
struct TensorBox {
  std::vector<uint64_t> offsets = {};
  std::vector<uint64_t> sizes = {};
};
std::string to_string(const TensorBox& box);  // "(7, 0) of size (6, 6)"

// Limit of the comparisons that finding overlaps may take: about 1 s. n boxes that are cut along
// one axis take n of them; a grid of n boxes about n times the cells along its shortest side.
constexpr uint64_t kMaxBoxComparisons = uint64_t{1} << 26;

// Each element of the tensor lies in exactly one box, or kCorrupt: names `where` and the box that
// has another number of axes, reaches beyond the tensor or overlaps another one, or how many
// elements are in none. Boxes without elements may lie anywhere in the tensor. The product of the
// shape must fit into 64 bits.
void check_tiling(const std::vector<uint64_t>& shape, const std::vector<TensorBox>& boxes,
                  const std::string& where);

struct BoxPart {
  TensorBox box;
  NamedTensor tensor;  // of the box's sizes and the whole's element type
};

// The whole tensor, for boxes that tile it. Cost of read(): for a box of consecutive elements its
// own read; else the box's elements through a buffer of 1 MiB. Threads: any.
NamedTensor join_boxes(TensorInfo info, std::vector<BoxPart> parts);

}  // namespace gxp
