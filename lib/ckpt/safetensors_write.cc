#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "lib/base/bytes.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/json.h"
#include "lib/ckpt/safetensors.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

using Selection = std::vector<const NamedTensor*>;

Selection weights_of(const NamedTensors& tensors) {
  Selection weights;
  for (const NamedTensor& tensor : tensors.tensors) {
    if (tensor.info.role == Role::kWeight) weights.push_back(&tensor);
  }
  return weights;
}

uint64_t bytes_of(const Selection& tensors) {
  uint64_t bytes = 0;
  for (const NamedTensor* tensor : tensors) bytes += tensor->info.bytes();
  return bytes;
}

std::map<std::string, std::string> metadata_of(const NamedTensors& tensors) {
  auto metadata = tensors.metadata;
  metadata.try_emplace("format", "pt");
  if (tensors.step) metadata["gxp.step"] = fmt::format("{}", *tensors.step);
  for (const auto& [key, value] : tensors.config) {
    if (key.starts_with("model.")) metadata["gxp." + key] = value;
  }
  return metadata;
}

// As the reference writes it: keys in this order, no spaces, padded with spaces to 8 bytes.
std::string make_header(const Selection& tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::string json = "{\"__metadata__\":" + write_json(metadata);
  uint64_t offset = 0;
  for (const NamedTensor* tensor : tensors) {
    const TensorInfo& info = tensor->info;
    json += fmt::format(",{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        write_json(info.name), to_string(info.dtype), fmt::join(info.shape, ","),
                        offset, offset + info.bytes());
    offset += info.bytes();
  }
  json += '}';
  json.resize(round_up(json.size(), 8), ' ');
  return json;
}

// Highest alignment first, so that every tensor is aligned; then by name.
void sort_like_reference(Selection& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return std::tie(a->info.dtype, a->info.name) < std::tie(b->info.dtype, b->info.name);
  });
}

void write_file(Selection tensors, const std::map<std::string, std::string>& metadata,
                const std::string& path) {
  sort_like_reference(tensors);
  const std::string header = make_header(tensors, metadata);
  const uint64_t length = header.size();
  OutputFile file(path);
  file.write({reinterpret_cast<const std::byte*>(&length), sizeof(length)});
  file.write(header);
  for (const NamedTensor* tensor : tensors)
    stream(*tensor, [&](ConstMemory block) { file.write(block); });
  file.close();
}

// In the given order; greedy, as huggingface_hub does.
std::vector<Selection> split(const Selection& tensors, uint64_t shard_bytes) {
  std::vector<Selection> shards(1);
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

}  // namespace

void write_safetensors_file(const NamedTensors& tensors, const std::string& path) {
  write_file(weights_of(tensors), metadata_of(tensors), path);
}

void write_safetensors_directory(const NamedTensors& tensors, const std::string& directory,
                                 uint64_t shard_bytes) {
  const Selection weights = weights_of(tensors);
  const auto shards = split(weights, shard_bytes);
  const auto metadata = metadata_of(tensors);
  if (shards.size() == 1) return write_file(weights, metadata, directory + "/model.safetensors");
  Json index;
  index["metadata"]["total_size"] = bytes_of(weights);
  for (size_t i = 0; i < shards.size(); ++i) {
    const auto name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    write_file(shards[i], metadata, fmt::format("{}/{}", directory, name));
    for (const NamedTensor* tensor : shards[i]) index["weight_map"][tensor->info.name] = name;
  }
  write_text(directory + "/model.safetensors.index.json", index.dump(2) + "\n");
}

}  // namespace gxp
