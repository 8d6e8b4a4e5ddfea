// How the tensors of a checkpoint are divided among its files.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/ckpt/format.h"

namespace gxp {

using TensorSelection = std::vector<const NamedTensor*>;

uint64_t bytes_of(const TensorSelection& tensors);

// In the given order, at least one: options.shards files of about equal size, or files of up to
// options.shard_bytes each, a larger tensor in a file of its own. kUsage: fewer tensors than shards.
std::vector<TensorSelection> split_into_shards(const TensorSelection& tensors,
                                               const WriteOptions& options);

}  // namespace gxp
