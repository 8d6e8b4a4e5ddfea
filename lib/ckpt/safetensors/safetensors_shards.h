// Directories of safetensors as torch's distributed checkpoint writes them
// (HuggingFaceStorageWriter with save_distributed): each rank has files of its own with its blocks
// of the tensors.
//
//   shard-00002-model-00001-of-00003.safetensors   rank 1's file 1 of 3
//   __metadata__ of each: "DCP_SHARDING_INFO": {"NAME": {"saved_offsets": [row, column, ...]}}
//
// There is no index, and nothing records a tensor's shape: it ends where its last block does. So a
// directory that lacks the last ranks' files cannot be told from a whole one by itself; all other
// gaps are found.
// Source: torch 2.15, torch/distributed/checkpoint/{hf_storage,_hf_utils}.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// A tensor that is stored in blocks, as ranks of a sharded run save it: each block has offsets in
// the tensor and sizes, in any number of dimensions.
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

// Whether `path` is a directory with such a file. False also where it cannot be listed.
bool is_sharded_safetensors(const std::string& path);

// The whole tensors. kCorrupt: a number of a rank or a file is missing, files disagree about how
// many there are, a file does not record the positions of its blocks, or the blocks of a tensor
// overlap, leave a hole, or have several types. Holds all files open.
NamedTensors read_sharded_safetensors(const std::string& path);

}  // namespace gxp
