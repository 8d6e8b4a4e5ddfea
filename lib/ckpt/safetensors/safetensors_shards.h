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

#include <string>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// Whether `path` is a directory with such a file. False also where it cannot be listed.
bool is_sharded_safetensors(const std::string& path);

// The whole tensors. kCorrupt: a number of a rank or a file is missing, files disagree about how
// many there are, a file does not record the positions of its blocks, or the blocks of a tensor
// overlap, leave a hole, or have several types. Holds all files open.
NamedTensors read_sharded_safetensors(const std::string& path);

}  // namespace gxp
