// A tensor that is stored in blocks, as ranks of a sharded run save it: each block has offsets in
// the tensor and sizes, in any number of dimensions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

struct TensorBlock {
  std::vector<uint64_t> offsets;  // one for each dimension of the whole
  NamedTensor part;               // its shape has the block's sizes
};

// The whole, read from its blocks when it is asked for. Its shape is `shape`; name, role and dtype
// are the blocks', of which there is at least one. kCorrupt, beginning with `where`: the blocks
// have different types or numbers of dimensions, or do not tile the shape (tensor_boxes.h, which
// has the costs).
NamedTensor join_blocks(std::vector<TensorBlock> blocks, std::vector<uint64_t> shape,
                        const std::string& where);

// The smallest shape that holds the blocks. kCorrupt: they have different numbers of dimensions, or
// an end exceeds 64 bits.
std::vector<uint64_t> shape_around(const std::vector<TensorBlock>& blocks,
                                   const std::string& where);

}  // namespace gxp
