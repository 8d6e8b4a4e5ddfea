#include "lib/ckpt/safetensors/safetensors_shards.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lib/base/error.h"
#include "lib/base/json/json.h"
#include "lib/base/log.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/name_parts.h"
#include "lib/ckpt/safetensors/safetensors.h"
#include "lib/ckpt/tensor_boxes.h"

namespace gxp {
namespace {

using Sizes = std::vector<uint64_t>;

const Sizes& sizes_of(const TensorBlock& block) { return block.part.info.shape; }

std::string in_words(const TensorBlock& block) {
  return fmt::format("the block at ({}) of shape ({})", joined(block.offsets, ", "),
                     joined(sizes_of(block), ", "));
}

constexpr const char* kShardingInfo = "DCP_SHARDING_INFO";
constexpr const char* kDcpVersion = "DCP_VERSION";

struct ShardName {
  uint32_t shard = 0;  // from 1
  uint32_t file = 0;   // from 1
  uint32_t files = 0;
};

std::optional<ShardName> parse_shard_name(std::string_view name) {
  ShardName parsed;
  const bool fits = skip(name, "shard-") && skip_number(name, parsed.shard) &&
                    skip(name, "-model-") && skip_number(name, parsed.file) && skip(name, "-of-") &&
                    skip_number(name, parsed.files) && name == ".safetensors";
  const bool counts_from_1 = parsed.shard > 0 && parsed.file > 0 && parsed.files > 0;
  return fits && counts_from_1 ? std::optional(parsed) : std::nullopt;
}

std::vector<std::string> shard_files(const std::string& path) {
  const Fd directory(int(check_sys(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                   fmt::format("list {}", path))));
  std::vector<std::string> names = list_names(directory.get(), path);
  std::erase_if(names, [](const std::string& name) { return !parse_shard_name(name); });
  return names;
}

// Each number from 1 to the largest, or to `last`.
void check_numbers(const std::set<uint32_t>& numbers, uint32_t last, const std::string& what,
                   const std::string& path) {
  uint32_t next = 1;
  for (const uint32_t number : numbers) {
    if (number != next) break;
    ++next;
  }
  if (next <= last)
    fail(ErrorKind::kCorrupt, "read {}: {} {} of {} is missing", path, what, next, last);
}

void check_names(const std::vector<std::string>& names, const std::string& path) {
  std::set<uint32_t> shards, files;
  const uint32_t count = parse_shard_name(names.front())->files;
  for (const std::string& text : names) {
    const ShardName name = *parse_shard_name(text);
    if (name.files != count || name.file > count)
      fail(ErrorKind::kCorrupt, "read {}: {} belongs to another set of files than {}", path, text,
           names.front());
    shards.insert(name.shard);
    files.insert(name.file);
  }
  check_numbers(shards, *shards.rbegin(), "shard", path);
  check_numbers(files, count, "model file", path);
}

using Blocks = std::map<std::string, std::vector<TensorBlock>>;

// Adds the blocks of one file; the names that it adds for the first time also to `order`.
void add_blocks(const std::string& file, NamedTensors& result, Blocks& blocks,
                std::vector<std::string>& order) {
  NamedTensors part = read_safetensors(file);
  const std::string where = fmt::format("read {}: __metadata__", file);
  const auto info = part.metadata.find(kShardingInfo);
  if (info == part.metadata.end())
    fail(ErrorKind::kCorrupt, "{}: {} is missing", where, kShardingInfo);
  const Json offsets = parse_json(info->second, file + ": " + kShardingInfo);
  for (NamedTensor& tensor : part.tensors) {
    const std::string name = tensor.info.name;
    const std::string its = fmt::format("{}: {} of '{}'", where, kShardingInfo, name);
    const Json& entry = member(offsets, name.c_str(), where + ": " + kShardingInfo);
    auto& list = blocks[name];
    if (list.empty()) order.push_back(name);
    list.push_back({to_numbers(member(entry, "saved_offsets", its), its), std::move(tensor)});
  }
  part.metadata.erase(kShardingInfo);
  part.metadata.erase(kDcpVersion);
  result.metadata.merge(part.metadata);
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

bool is_sharded_safetensors(const std::string& path) {
  try {
    return !shard_files(path).empty();
  } catch (const Error&) {
    return false;
  }
}

NamedTensors read_sharded_safetensors(const std::string& path) {
  NamedTensors result{.format = "safetensors"};
  const std::vector<std::string> names = shard_files(path);
  check_names(names, path);
  Blocks blocks;
  std::vector<std::string> order;
  for (const std::string& name : names)
    add_blocks(fmt::format("{}/{}", path, name), result, blocks, order);
  for (const std::string& name : order) {
    const std::string where = fmt::format("read {}: tensor '{}'", path, name);
    auto& list = blocks[name];
    auto shape = shape_around(list, where);
    result.tensors.push_back(join_blocks(std::move(list), std::move(shape), where));
  }
  log_info(
      "{}: joined from {} shards, which do not record the tensors' shapes, so a missing last shard "
      "would not be noticed",
      path, names.size());
  return result;
}

}  // namespace gxp
