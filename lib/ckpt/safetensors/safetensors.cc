#include "lib/ckpt/safetensors/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/json/json.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/finished_files.h"
#include "lib/ckpt/own_files.h"
#include "lib/ckpt/read_ahead.h"
#include "lib/ckpt/run_metadata.h"
#include "lib/ckpt/safetensors/safetensors_shards.h"
#include "lib/ckpt/shards.h"
#include "lib/ckpt/weight_index.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxRank = 64;

struct Placed {
  SafetensorsHeader::Entry entry;
  uint64_t begin = 0;
  uint64_t end = 0;
};

Placed parse_entry(const std::string& name, const Json& json, const std::string& file) {
  if (name.empty() || name.find('\0') != std::string::npos)
    fail(ErrorKind::kCorrupt, "read {}: a tensor's name is empty or holds a NUL", file);
  const std::string where = fmt::format("read {}: tensor '{}'", file, name);
  const std::string dtype_name = to_text(member(json, "dtype", where), where + ": dtype");
  const auto dtype = parse_storage_dtype(dtype_name);
  if (!dtype) fail(ErrorKind::kCorrupt, "{}: dtype '{}' is unknown", where, dtype_name);
  auto shape = to_numbers(member(json, "shape", where), where + ": shape");
  const auto offsets = to_numbers(member(json, "data_offsets", where), where + ": data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    fail(ErrorKind::kCorrupt, "{}: data_offsets is not [begin, end]", where);
  if (shape.size() > kMaxRank)
    fail(ErrorKind::kCorrupt, "{}: {} dimensions, more than {}", where, shape.size(), kMaxRank);
  const auto count = checked_count(shape);
  uint64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, size_of(*dtype), &bytes))
    fail(ErrorKind::kCorrupt, "{}: the shape's product exceeds 64 bits", where);
  if (bytes != offsets[1] - offsets[0])
    fail(ErrorKind::kCorrupt, "{}: the shape takes {} bytes, data_offsets give {}", where, bytes,
         offsets[1] - offsets[0]);
  return {{{name, Role::kWeight, *dtype, std::move(shape)}, 0}, offsets[0], offsets[1]};
}

// The tensors follow each other from 0 to `data_bytes`.
void check_cover(const std::vector<Placed>& tensors, uint64_t data_bytes, const std::string& file) {
  uint64_t end = 0;
  for (const Placed& placed : tensors) {
    if (placed.begin != end)
      fail(ErrorKind::kCorrupt, "read {}: tensor '{}' begins at byte {} of the data, expected {}",
           file, placed.entry.info.name, placed.begin, end);
    end = placed.end;
  }
  if (end != data_bytes)
    fail(ErrorKind::kCorrupt, "read {}: the tensors take {} bytes, the file has {}; it is {}", file,
         end, data_bytes, end > data_bytes ? "truncated" : "longer than its header says");
}

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

SafetensorsHeader read_header(const InputFile& file) {
  uint64_t length = 0;
  if (file.bytes() < sizeof(length))
    fail(ErrorKind::kCorrupt, "read {}: truncated: {} bytes are too few for a safetensors file",
         file.path(), file.bytes());
  file.read(0, {reinterpret_cast<std::byte*>(&length), sizeof(length)});
  if (length > kMaxHeaderBytes || length > file.bytes() - sizeof(length))
    fail(ErrorKind::kCorrupt,
         "read {}: the header would take {} bytes, but the file has {} and a header at most {}",
         file.path(), length, file.bytes(), kMaxHeaderBytes);
  std::string json(length, '\0');
  file.read(sizeof(length), memory_of(json));
  return parse_safetensors_header(json, file.bytes(), file.path());
}

// The tensors and the metadata of one file.
NamedTensors read_file(const std::string& path) {
  const auto file = std::make_shared<InputFile>(path);  // owners: the readers of its tensors
  SafetensorsHeader header = read_header(*file);
  NamedTensors result;
  for (auto& entry : header.entries) {
    const uint64_t offset = entry.offset;
    const size_t element = size_of(entry.info.dtype);
    result.tensors.push_back({std::move(entry.info), [=](uint64_t begin, Memory out) {
                                file->read(offset + begin * element, out);
                              }});
  }
  result.metadata = std::move(header.metadata);
  return result;
}

// The index or the file that a directory or a path means.
std::string find_root(const std::string& path) {
  std::error_code error;  // which opening the file will tell
  if (!fs::is_directory(path, error)) return path;
  const std::string index = fs::path(path) / kIndex;
  return path_exists(index) ? index : std::string(fs::path(path) / kSingle);
}

bool begins_like_safetensors(const std::string& path) {
  const InputFile file(path);
  std::array<unsigned char, 9> head = {};
  if (file.bytes() < head.size()) return false;
  file.read(0, memory_of(head));
  return head[8] == '{' && head[4] + head[5] + head[6] + head[7] == 0;
}

TensorSelection weights_of(const NamedTensors& tensors) {
  TensorSelection weights;
  for (const NamedTensor& tensor : tensors.tensors) {
    if (tensor.info.role == Role::kWeight) weights.push_back(&tensor);
  }
  return weights;
}

std::map<std::string, std::string> metadata_of(const NamedTensors& tensors) {
  auto metadata = with_run_metadata(tensors);
  metadata.try_emplace("format", "pt");
  return metadata;
}

// One file to be written.
struct ShardPlan {
  std::string name;
  TensorSelection tensors;  // in the order of the bytes
};

// As the reference writes it: keys in this order, no spaces, padded with spaces to 8 bytes.
std::string make_header(const TensorSelection& tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::string json = "{\"__metadata__\":" + write_json(metadata);
  uint64_t offset = 0;
  for (const NamedTensor* tensor : tensors) {
    const TensorInfo& info = tensor->info;
    json += fmt::format(",{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        write_json(info.name), to_string(info.dtype), joined(info.shape, ","),
                        offset, offset + info.bytes());
    offset += info.bytes();
  }
  json += '}';
  json.resize(round_up(json.size(), 8), ' ');
  return json;
}

// Highest alignment first, so that every tensor is aligned; then by name.
void sort_like_reference(TensorSelection& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return std::tie(a->info.dtype, a->info.name) < std::tie(b->info.dtype, b->info.name);
  });
}

FinishedFiles::File write_file(const ShardPlan& shard,
                               const std::map<std::string, std::string>& metadata,
                               const std::string& path) {
  const std::string header = make_header(shard.tensors, metadata);
  const uint64_t length = header.size();
  OutputFile file(path);
  file.write({reinterpret_cast<const std::byte*>(&length), sizeof(length)});
  file.write(header);
  stream_ahead(shard.tensors, [&](const NamedTensor&, ConstMemory block) { file.write(block); });
  return {file.bytes(), file.close()};
}

ShardPlan plan_file(const std::string& name, TensorSelection tensors) {
  sort_like_reference(tensors);
  return {name, std::move(tensors)};
}

std::vector<ShardPlan> plan_shards(const NamedTensors& tensors, const WriteOptions& options) {
  std::vector<TensorSelection> parts = split_into_shards(weights_of(tensors), options);
  if (parts.size() == 1) return {plan_file(kSingle, std::move(parts[0]))};
  std::vector<ShardPlan> shards;
  for (size_t i = 0; i < parts.size(); ++i)
    shards.push_back(plan_file(fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, parts.size()),
                               std::move(parts[i])));
  return shards;
}

std::string make_index(const std::vector<ShardPlan>& shards) {
  Json index;
  uint64_t bytes = 0;
  for (const ShardPlan& shard : shards) {
    bytes += bytes_of(shard.tensors);
    for (const NamedTensor* tensor : shard.tensors)
      index["weight_map"][tensor->info.name] = shard.name;
  }
  index["metadata"]["total_size"] = bytes;
  return index.dump(2) + "\n";
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t file_bytes,
                                           const std::string& file) {
  const Json root = parse_json(json, file);
  SafetensorsHeader header;
  std::vector<Placed> tensors;
  for (const auto& [key, value] : to_object(root, "read " + file + ": the header").items()) {
    if (key != "__metadata__") {
      tensors.push_back(parse_entry(key, value, file));
      continue;
    }
    const std::string where = "read " + file + ": __metadata__";
    for (const auto& [name, text] : to_object(value, where).items())
      header.metadata[name] = to_text(text, where);
  }
  std::sort(tensors.begin(), tensors.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  const uint64_t data_begin = sizeof(uint64_t) + json.size();
  check_cover(tensors, file_bytes - data_begin, file);
  for (Placed& placed : tensors) {
    placed.entry.offset = data_begin + placed.begin;
    header.entries.push_back(std::move(placed.entry));
  }
  return header;
}

bool is_safetensors(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error))
    return path_exists(find_root(path)) || is_sharded_safetensors(path);
  return path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json") ||
         (fs::is_regular_file(path, error) && begins_like_safetensors(path));
}

bool is_safetensors_file(std::string_view name) {
  return name == kSingle || name == kIndex || is_numbered_file(name, "model-", ".safetensors");
}

NamedTensors read_safetensors(const std::string& path) {
  const std::string root = find_root(path);
  if (root != path && !path_exists(root)) return read_sharded_safetensors(path);
  if (root != path && root.ends_with(kIndex)) check_no_rival(root, kSingle);
  NamedTensors result =
      root.ends_with(".json") ? read_weight_index(root, read_file) : read_file(root);
  result.format = "safetensors";
  take_run_metadata(result);
  return result;
}

void write_safetensors_file(const NamedTensors& tensors, const std::string& path) {
  write_file(plan_file(path, weights_of(tensors)), metadata_of(tensors), path);
}

void write_safetensors_directory(const NamedTensors& tensors, const std::string& directory,
                                 const WriteOptions& options) {
  FinishedFiles finished = FinishedFiles::enter(directory, options);
  const auto shards = plan_shards(tensors, options);
  const auto metadata = metadata_of(tensors);
  for (const ShardPlan& shard : shards) {
    if (finished.find(shard.name)) continue;
    const std::string path = fmt::format("{}/{}", directory, shard.name);
    finished.add(shard.name, write_file(shard, metadata, path));
  }
  if (shards.size() > 1) write_text(fmt::format("{}/{}", directory, kIndex), make_index(shards));
}

std::vector<PlannedFile> plan_safetensors(const NamedTensors& tensors, const std::string& path,
                                          const WriteOptions& options) {
  const bool single = path.ends_with(".safetensors");
  const auto shards = single
                          ? std::vector{plan_file(fs::path(path).filename(), weights_of(tensors))}
                          : plan_shards(tensors, options);
  const auto metadata = metadata_of(tensors);
  std::vector<PlannedFile> files;
  for (const ShardPlan& shard : shards) {
    const uint64_t header = sizeof(uint64_t) + make_header(shard.tensors, metadata).size();
    files.push_back({shard.name, shard.tensors.size(), header + bytes_of(shard.tensors)});
  }
  if (shards.size() > 1) files.push_back({kIndex, 0, make_index(shards).size()});
  return files;
}

}  // namespace gxp
