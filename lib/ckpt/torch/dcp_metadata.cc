#include "lib/ckpt/torch/dcp_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "lib/base/text/joined.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/torch/pickle.h"
#include "lib/ckpt/torch/torch_tensors.h"

namespace gxp {
namespace {

constexpr std::string_view kDcpModule = "torch.distributed.checkpoint.metadata.";
constexpr size_t kMaxDcpMembers = 16;
constexpr size_t kMaxFileName = 255;

// An object of this class. kCorrupt names what there is instead.
PickleValue to_dcp_object(PickleValue value, const std::string& global, const std::string& where) {
  if (!value.is_call(global))
    fail(ErrorKind::kCorrupt, "{}: {} expected, found {}", where, global, value.describe());
  return value;
}

// Its members. One dict may be named by many objects, so that its size is bounded.
PickleValue dcp_members(PickleValue value, const std::string& global, const std::string& where) {
  const PickleValue members = to_dict(to_dcp_object(value, global, where).state(), where);
  if (members.size() > kMaxDcpMembers)
    fail(ErrorKind::kCorrupt, "{}: {} has {} members", where, global, members.size());
  return members;
}

// The text of a key; it lies in the pickle.
std::string_view dcp_key_text(PickleValue key, const std::string& where) {
  if (!key.is(PickleKind::kText) || key.text().empty() || key.text().size() > kMaxDcpKeyBytes ||
      key.text().find('\0') != std::string_view::npos)
    fail(ErrorKind::kCorrupt, "{}: {} is not a key; a key is a text of 1 to {} bytes without NUL",
         where, key.describe(), kMaxDcpKeyBytes);
  return key.text();
}

// The path, if joined by dots it makes the key.
std::optional<std::vector<std::string>> dcp_path(PickleValue path, std::string_view key) {
  if (!path.is(PickleKind::kTuple) && !path.is(PickleKind::kList)) return std::nullopt;
  std::vector<std::string> parts;
  bool begun = false;
  for (size_t i = 0; i < path.size(); ++i) {
    const PickleValue item = path.item(i);
    if (!item.is(PickleKind::kText) && !item.is(PickleKind::kInteger)) return std::nullopt;
    if (begun && !key.starts_with('.')) return std::nullopt;
    if (begun) key.remove_prefix(1);
    if (item.is(PickleKind::kText) && !key.starts_with(item.text())) return std::nullopt;
    std::string part =
        item.is(PickleKind::kText) ? std::string(item.text()) : fmt::format("{}", item.integer());
    if (!key.starts_with(part)) return std::nullopt;
    key.remove_prefix(part.size());
    parts.push_back(std::move(part));
    begun = true;
  }
  if (!begun || !key.empty()) return std::nullopt;
  return parts;
}

bool is_dcp_strided(PickleValue layout) {
  if (!layout.is_call("torch.serialization._get_layout")) return false;
  const PickleValue arguments = layout.arguments();
  return arguments.size() == 1 && arguments.item(0).is(PickleKind::kText) &&
         arguments.item(0).text() == "torch.strided";
}

// The element type; the properties after the layout say nothing about the contents.
StorageDType read_dcp_properties(PickleValue value, const std::string& where) {
  constexpr std::array<std::string_view, 2> kClasses = {
      "torch.distributed.checkpoint.metadata.TensorProperties",
      "torch.distributed._shard.sharded_tensor.metadata.TensorProperties"};
  const bool known =
      std::ranges::any_of(kClasses, [&](std::string_view global) { return value.is_call(global); });
  if (!known)
    fail(ErrorKind::kCorrupt, "{}: {} expected, found {}", where, kClasses[0], value.describe());
  const PickleValue state = to_sequence(value.state(), where + ": properties");
  if (state.size() < 2)
    fail(ErrorKind::kCorrupt, "{}: {} properties; at least 2 are expected", where, state.size());
  const PickleValue dtype = state.item(0);
  const auto parsed = parse_torch_dtype(dtype.is(PickleKind::kGlobal) ? dtype.text() : "");
  if (!parsed)
    fail(ErrorKind::kCorrupt, "{}: element type {} is not supported", where, dtype.describe());
  if (!is_dcp_strided(state.item(1)))
    fail(ErrorKind::kCorrupt, "{}: layout {} is not supported; gxp reads torch.strided", where,
         state.item(1).describe());
  return *parsed;
}

// Where the chunks of one key lie, by their offsets; what is no tensor has no offset.
using DcpStorageInfos = std::map<std::optional<std::vector<uint64_t>>, DcpStorageInfo>;

std::string offset_text(const std::optional<std::vector<uint64_t>>& offset) {
  return offset ? fmt::format(" at ({})", joined(*offset, ", ")) : "";
}

class DcpMetadataReader {
 public:
  DcpMetadataReader(const Pickle& pickle, std::string where)
      : root_(pickle.root()), where_(std::move(where)) {}
  DcpMetadata read();

 private:
  void read_paths(PickleValue planner_data);
  void read_places(PickleValue storage_data);
  DcpStorageInfo read_place(PickleValue info, const std::string& where);
  void read_entries(PickleValue entries);
  void read_tensor(DcpKey key, PickleValue value, DcpStorageInfos& places);
  void take_chunk(PickleValue chunk, DcpStorageInfos& places, DcpTensor& tensor,
                  const std::string& where);
  DcpKey make_key(std::string_view text) const;
  [[nodiscard]] std::string where_of(std::string_view key) const {
    return fmt::format("{}: '{}'", where_, key);
  }

  PickleValue root_;
  std::string where_;
  bool nested_ = false;
  std::unordered_map<std::string_view, PickleValue> paths_;  // texts lie in the pickle
  std::unordered_map<std::string_view, DcpStorageInfos> places_;
  std::unordered_map<std::string_view, size_t> files_;
  uint64_t chunks_left_ = kMaxPickleItems;
  DcpMetadata result_;
};

void DcpMetadataReader::read_paths(PickleValue planner_data) {
  if (planner_data.is_none()) return;
  nested_ = true;
  to_dict(planner_data, where_ + ": planner_data");
  for (size_t i = 0; i < planner_data.size(); ++i) {
    const std::string_view key = dcp_key_text(planner_data.key(i), where_ + ": planner_data");
    if (!paths_.emplace(key, planner_data.value(i)).second)
      fail(ErrorKind::kCorrupt, "{}: it occurs twice in planner_data", where_of(key));
  }
}

DcpStorageInfo DcpMetadataReader::read_place(PickleValue info, const std::string& where) {
  const PickleValue members =
      dcp_members(info, "torch.distributed.checkpoint.filesystem._StorageInfo", where);
  const auto transforms = find_member(members, "transform_descriptors", where);
  if (transforms && !transforms->is_none() &&
      to_sequence(*transforms, where + ": transforms").size() != 0)
    fail(ErrorKind::kCorrupt, "{}: it is compressed ({}), which gxp does not read", where,
         transforms->item(0).describe());
  const PickleValue name = member(members, "relative_path", where);
  if (!name.is(PickleKind::kText) || name.text().size() > kMaxFileName ||
      !is_plain_name(name.text()))
    fail(ErrorKind::kCorrupt, "{}: relative_path is {}, not the name of a file beside .metadata",
         where, name.describe());
  const auto [file, fresh] = files_.emplace(name.text(), result_.files.size());
  if (fresh) result_.files.emplace_back(name.text());
  return {file->second, to_unsigned(member(members, "offset", where), where + ": offset"),
          to_unsigned(member(members, "length", where), where + ": length")};
}

void DcpMetadataReader::read_places(PickleValue storage_data) {
  to_dict(storage_data, where_ + ": storage_data");
  for (size_t i = 0; i < storage_data.size(); ++i) {
    const PickleValue index = dcp_members(
        storage_data.key(i), fmt::format("{}MetadataIndex", kDcpModule), where_ + ": storage_data");
    const std::string_view key =
        dcp_key_text(member(index, "fqn", where_ + ": storage_data"), where_ + ": storage_data");
    const std::string where = where_of(key);
    const auto given = find_member(index, "offset", where);
    std::optional<std::vector<uint64_t>> offset;
    if (given && !given->is_none()) offset = to_sizes(*given, where + ": offset");
    const DcpStorageInfo place = read_place(storage_data.value(i), where);
    if (!places_[key].emplace(offset, place).second)
      fail(ErrorKind::kCorrupt, "{}: storage_data locates it twice{}", where, offset_text(offset));
  }
}

DcpKey DcpMetadataReader::make_key(std::string_view text) const {
  DcpKey key{std::string(text), {std::string(text)}};
  if (!nested_) return key;
  const auto found = paths_.find(text);
  const auto path = found == paths_.end() ? std::nullopt : dcp_path(found->second, text);
  if (!path)
    fail(ErrorKind::kCorrupt, "{}: planner_data has {} as its path", where_of(text),
         found == paths_.end() ? "nothing" : found->second.describe());
  key.path = *path;
  return key;
}

void DcpMetadataReader::take_chunk(PickleValue chunk, DcpStorageInfos& places, DcpTensor& tensor,
                                   const std::string& where) {
  const PickleValue members =
      dcp_members(chunk, fmt::format("{}ChunkStorageMetadata", kDcpModule), where);
  TensorBox box{to_sizes(member(members, "offsets", where), where + ": offsets"),
                to_sizes(member(members, "sizes", where), where + ": sizes")};
  const auto place = places.find(box.offsets);
  if (checked_count(box.sizes) == 0) {  // a rank's share of nothing, which need not be stored
    if (place != places.end()) places.erase(place);
    return;
  }
  if (place == places.end())
    fail(ErrorKind::kCorrupt,
         "{}: the chunk at {} occurs twice, or storage_data does not locate it", where,
         to_string(box));
  tensor.chunks.push_back(std::move(box));
  tensor.places.push_back(place->second);
  places.erase(place);
}

void DcpMetadataReader::read_tensor(DcpKey key, PickleValue value, DcpStorageInfos& places) {
  const std::string where = fmt::format("{}: tensor '{}'", where_, key.text);
  const PickleValue members =
      dcp_members(value, fmt::format("{}TensorStorageMetadata", kDcpModule), where);
  DcpTensor tensor{.key = std::move(key)};
  tensor.dtype = read_dcp_properties(member(members, "properties", where), where);
  tensor.shape = to_sizes(member(members, "size", where), where + ": size");
  const PickleValue chunks = to_sequence(member(members, "chunks", where), where + ": chunks");
  if (chunks.size() > chunks_left_)  // one list may be named by many tensors
    fail(ErrorKind::kCorrupt, "{}: with its {} chunks there are more than {}", where, chunks.size(),
         kMaxPickleItems);
  chunks_left_ -= chunks.size();
  for (size_t i = 0; i < chunks.size(); ++i) take_chunk(chunks.item(i), places, tensor, where);
  check_tiling(tensor.shape, tensor.chunks, where);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(checked_count(tensor.shape).value(), size_of(tensor.dtype), &bytes))
    fail(ErrorKind::kCorrupt, "{}: the shape's product exceeds 64 bits", where);
  result_.tensors.push_back(std::move(tensor));
}

void DcpMetadataReader::read_entries(PickleValue entries) {
  to_dict(entries, where_ + ": state_dict_metadata");
  std::unordered_set<std::string_view> keys;
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string_view text = dcp_key_text(entries.key(i), where_ + ": state_dict_metadata");
    if (!keys.insert(text).second)
      fail(ErrorKind::kCorrupt, "{}: the key occurs twice", where_of(text));
    DcpStorageInfos& places = places_[text];
    const PickleValue value = entries.value(i);
    if (!value.is_call(fmt::format("{}BytesStorageMetadata", kDcpModule))) {
      read_tensor(make_key(text), value, places);
    } else {
      const auto place = places.find(std::nullopt);
      if (place == places.end())
        fail(ErrorKind::kCorrupt, "{}: storage_data does not locate it", where_of(text));
      result_.objects.push_back({make_key(text), place->second});
      places.erase(place);
    }
    if (!places.empty())
      fail(ErrorKind::kCorrupt, "{}: storage_data locates a chunk of it{} that does not exist",
           where_of(text), offset_text(places.begin()->first));
    places_.erase(text);
  }
  if (!places_.empty())
    fail(ErrorKind::kCorrupt, "{}: storage_data locates it, but there is no such key",
         where_of(places_.begin()->first));
}

DcpMetadata DcpMetadataReader::read() {
  const PickleValue members = dcp_members(root_, fmt::format("{}Metadata", kDcpModule), where_);
  read_paths(member(members, "planner_data", where_));
  read_places(member(members, "storage_data", where_));
  read_entries(member(members, "state_dict_metadata", where_));
  return std::move(result_);
}

}  // namespace

DcpMetadata read_dcp_metadata(const FileRange& range) {
  const std::string where = "read " + range.file->path();
  const Pickle pickle = Pickle::read(range);
  if (pickle.end() != range.bytes)
    fail(ErrorKind::kCorrupt, "{}: {} bytes after its pickle", where, range.bytes - pickle.end());
  return DcpMetadataReader(pickle, where).read();
}

}  // namespace gxp
