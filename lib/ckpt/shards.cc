#include "lib/ckpt/shards.h"

#include "lib/base/error.h"

namespace gxp {
namespace {

// In the given order; greedy, as huggingface_hub does.
std::vector<TensorSelection> split_by_bytes(const TensorSelection& tensors, uint64_t shard_bytes) {
  std::vector<TensorSelection> shards(1);
  uint64_t bytes = 0;  // of the last shard
  for (const NamedTensor* tensor : tensors) {
    if (bytes + tensor->info.bytes() > shard_bytes && !shards.back().empty()) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(tensor);
    bytes += tensor->info.bytes();
  }
  return shards;
}

// In the given order: a shard ends at its share of the bytes, and each has at least one tensor.
std::vector<TensorSelection> split_by_count(const TensorSelection& tensors, size_t count) {
  if (tensors.size() < count)
    fail(ErrorKind::kUsage, "write a checkpoint: {} tensors cannot be split into {} files",
         tensors.size(), count);
  std::vector<TensorSelection> shards;
  const double share = double(bytes_of(tensors)) / double(count);
  double bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool must_begin = tensors.size() - i == count - shards.size();
    if (shards.size() < count && (must_begin || bytes >= share * double(shards.size())))
      shards.emplace_back();
    shards.back().push_back(tensors[i]);
    bytes += double(tensors[i]->info.bytes());
  }
  return shards;
}

}  // namespace

uint64_t bytes_of(const TensorSelection& tensors) {
  uint64_t bytes = 0;
  for (const NamedTensor* tensor : tensors) bytes += tensor->info.bytes();
  return bytes;
}

std::vector<TensorSelection> split_into_shards(const TensorSelection& tensors,
                                               const WriteOptions& options) {
  return options.shards > 0 ? split_by_count(tensors, options.shards)
                            : split_by_bytes(tensors, options.shard_bytes);
}

}  // namespace gxp
