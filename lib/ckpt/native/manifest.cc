#include "lib/ckpt/native/manifest.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "lib/base/hash.h"
#include "lib/base/json/json.h"
#include "lib/ckpt/file.h"

namespace gxp {
namespace {

constexpr const char* kFormatName = "gxp-checkpoint";
constexpr uint64_t kVersion = 1;
// The manifest ends with this, the hash of all bytes before it, and kSelfEnd.
constexpr std::string_view kSelfBegin = ",\n\"self_xxh3_128\":\"";
constexpr std::string_view kSelfEnd = "\"}\n";
constexpr size_t kHashDigits = 32;

std::string hash_of(std::string_view text) {
  return hash_hex(std::as_bytes(std::span(text.data(), text.size())));
}

Json to_json(const KeyValues& pairs) {
  Json array = Json::array();
  for (const auto& [key, value] : pairs) array.push_back({key, value});
  return array;
}

Json to_json(const DataFile& file) {
  return {{"name", file.name}, {"bytes", file.bytes}, {"xxh3_128", file.hash}};
}

Json to_json(const LogicalTensor& tensor) {
  const TensorInfo& info = tensor.info;
  Json pieces = Json::array();
  for (const Piece& piece : tensor.pieces)
    pieces.push_back({piece.file, piece.file_offset, piece.begin, piece.count});
  return {{"name", info.name},
          {"role", to_string(info.role)},
          {"dtype", to_string(info.dtype)},
          {"shape", info.shape},
          {"pieces", pieces}};
}

// An array with one element a line, for people.
template <class Rows>
std::string to_lines(const Rows& rows) {
  std::string text = "[";
  for (const auto& row : rows) text += (text.size() > 1 ? ",\n" : "\n") + write_json(to_json(row));
  return text + "]";
}

KeyValues parse_pairs(const Json& json, const std::string& where) {
  KeyValues pairs;
  for (const Json& pair : to_array(json, where)) {
    if (to_array(pair, where).size() != 2)
      fail(ErrorKind::kCorrupt, "{}: a [key, value] pair has {} elements", where, pair.size());
    pairs.emplace_back(to_text(pair[0], where), to_text(pair[1], where));
  }
  return pairs;
}

DataFile parse_file(const Json& json, const std::string& where) {
  return {to_text(member(json, "name", where), where),
          to_unsigned(member(json, "bytes", where), where),
          to_text(member(json, "xxh3_128", where), where)};
}

int parse_world_size(const Json& json, const std::string& where) {
  const uint64_t ranks = to_unsigned(json, where + ": world_size");
  if (ranks == 0 || ranks > uint64_t{std::numeric_limits<int>::max()})
    fail(ErrorKind::kCorrupt, "{}: world_size {} is not a number of ranks", where, ranks);
  return int(ranks);
}

LogicalTensor parse_tensor(const Json& json, const std::string& path) {
  LogicalTensor tensor;
  tensor.info.name = to_text(member(json, "name", path), path + ": a tensor's name");
  const std::string where = path + ": tensor '" + tensor.info.name + "'";
  const std::string role = to_text(member(json, "role", where), where);
  const std::string dtype = to_text(member(json, "dtype", where), where);
  const auto known_role = parse_role(role);
  const auto known_dtype = parse_storage_dtype(dtype);
  if (!known_role) fail(ErrorKind::kCorrupt, "{}: role '{}' is unknown", where, role);
  if (!known_dtype) fail(ErrorKind::kCorrupt, "{}: dtype '{}' is unknown", where, dtype);
  tensor.info.role = *known_role;
  tensor.info.dtype = *known_dtype;
  tensor.info.shape = to_numbers(member(json, "shape", where), where + ": shape");
  for (const Json& piece : to_array(member(json, "pieces", where), where)) {
    const auto numbers = to_numbers(piece, where + ": a piece");
    if (numbers.size() != 4 || numbers[0] > UINT32_MAX)
      fail(ErrorKind::kCorrupt, "{}: a piece is not [file, offset, begin, count]", where);
    tensor.pieces.push_back({uint32_t(numbers[0]), numbers[1], numbers[2], numbers[3]});
  }
  return tensor;
}

// Checks the hash at the end of `text` against the text before it.
void check_self(std::string_view text, const std::string& path) {
  const size_t tail = kSelfBegin.size() + kHashDigits + kSelfEnd.size();
  const size_t body = text.size() < tail ? 0 : text.size() - tail;
  if (text.size() < tail || text.substr(body, kSelfBegin.size()) != kSelfBegin ||
      !text.ends_with(kSelfEnd))
    fail(ErrorKind::kCorrupt, "{}: it does not end with its own hash; truncated or changed", path);
  const auto expected = text.substr(body + kSelfBegin.size(), kHashDigits);
  const std::string found = hash_of(text.substr(0, body));
  if (found != expected)
    fail(ErrorKind::kCorrupt, "{}: changed: xxh3-128 expected {}, found {}", path, expected, found);
}

void check_files(const Manifest& manifest, ErrorKind kind, const std::string& path) {
  std::set<std::string_view> names;
  for (const DataFile& file : manifest.files) {
    if (!is_plain_name(file.name))
      fail(kind, "{}: '{}' is not the name of a file beside it", path, file.name);
    if (!names.insert(file.name).second) fail(kind, "{}: file '{}' occurs twice", path, file.name);
  }
}

void check_tensor(const LogicalTensor& tensor, const Manifest& manifest, ErrorKind kind,
                  const std::string& where) {
  const auto count = checked_count(tensor.info.shape);
  const uint64_t element = size_of(tensor.info.dtype);
  if (!count || *count > UINT64_MAX / element)
    fail(kind, "{}: the shape's product exceeds 64 bits", where);
  uint64_t next = 0;
  for (const Piece& piece : tensor.pieces) {
    if (piece.begin != next || piece.count == 0 || piece.count > *count - next)
      fail(kind,
           "{}: a piece has first element {} and {} elements; expected first element {} of {}",
           where, piece.begin, piece.count, next, *count);
    next += piece.count;
    if (piece.file >= manifest.files.size())
      fail(kind, "{}: data file {} is not one of the {}", where, piece.file, manifest.files.size());
    const DataFile& file = manifest.files[piece.file];
    if (piece.file_offset > file.bytes || piece.count * element > file.bytes - piece.file_offset)
      fail(kind, "{}: {} elements at byte {} reach beyond {} with {} bytes", where, piece.count,
           piece.file_offset, file.name, file.bytes);
  }
  if (next != *count) fail(kind, "{}: elements {} to {} are in no file", where, next, *count - 1);
}

// Each byte of each file belongs to one element.
void check_coverage(const Manifest& manifest, ErrorKind kind, const std::string& path) {
  using Bytes = std::pair<uint64_t, uint64_t>;  // begin, end
  std::vector<std::vector<Bytes>> covered(manifest.files.size());
  for (const LogicalTensor& tensor : manifest.tensors) {
    for (const Piece& piece : tensor.pieces)
      covered[piece.file].emplace_back(
          piece.file_offset, piece.file_offset + piece.count * size_of(tensor.info.dtype));
  }
  for (size_t i = 0; i < covered.size(); ++i) {
    const DataFile& file = manifest.files[i];
    covered[i].emplace_back(file.bytes, file.bytes);
    std::ranges::sort(covered[i]);
    uint64_t next = 0;
    for (const auto& [begin, end] : covered[i]) {
      if (begin != next)
        fail(kind, "{}: bytes {} to {} of {} belong to {}", path, std::min(begin, next),
             std::max(begin, next), file.name, begin < next ? "two pieces" : "no tensor");
      next = end;
    }
  }
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  const CheckpointInfo& info = manifest.info;
  std::string text = fmt::format("{{\"format\":\"{}\",\n\"version\":{},\n", kFormatName, kVersion);
  const auto add = [&](const char* key, const Json& value) {
    text += fmt::format("\"{}\":{},\n", key, write_json(value));
  };
  add("gxp_version", manifest.gxp_version);
  add("step", info.step);
  add("samples_consumed", info.samples_consumed);
  add("world_size", info.world_size);
  add("strategy", info.strategy);
  add("config", to_json(info.config));
  add("state", to_json(info.state));
  text += "\"files\":" + to_lines(manifest.files);
  text += ",\n\"tensors\":" + to_lines(manifest.tensors);
  const std::string hash = hash_of(text);
  return text.append(kSelfBegin).append(hash).append(kSelfEnd);
}

Manifest parse_manifest(std::string_view text, const std::string& path) {
  const std::string where = "read " + path;
  check_self(text, where);
  const Json root = parse_json(text, path);
  const auto format = to_text(member(root, "format", where), where);
  const auto version = to_unsigned(member(root, "version", where), where);
  if (format != kFormatName || version != kVersion)
    fail(ErrorKind::kCorrupt, "{}: format {} version {}; this gxp reads {} version {}", where,
         format, version, kFormatName, kVersion);
  Manifest manifest;
  CheckpointInfo& info = manifest.info;
  manifest.gxp_version = to_text(member(root, "gxp_version", where), where);
  info.step = to_unsigned(member(root, "step", where), where);
  info.samples_consumed = to_unsigned(member(root, "samples_consumed", where), where);
  info.world_size = parse_world_size(member(root, "world_size", where), where);
  info.strategy = to_text(member(root, "strategy", where), where);
  info.config = parse_pairs(member(root, "config", where), where + ": config");
  info.state = parse_pairs(member(root, "state", where), where + ": state");
  for (const Json& file : to_array(member(root, "files", where), where))
    manifest.files.push_back(parse_file(file, where));
  for (const Json& tensor : to_array(member(root, "tensors", where), where))
    manifest.tensors.push_back(parse_tensor(tensor, where));
  check_manifest(manifest, ErrorKind::kCorrupt, where);
  return manifest;
}

void check_manifest(const Manifest& manifest, ErrorKind kind, const std::string& path) {
  check_files(manifest, kind, path);
  std::set<std::pair<std::string_view, Role>> names;
  for (const LogicalTensor& tensor : manifest.tensors) {
    const TensorInfo& info = tensor.info;
    if (info.name.empty() || info.name.find('\0') != std::string::npos)
      fail(kind, "{}: a tensor's name is empty or holds a NUL", path);
    const auto where = fmt::format("{}: {} '{}'", path, to_string(info.role), info.name);
    if (!names.insert({info.name, info.role}).second) fail(kind, "{} occurs twice", where);
    check_tensor(tensor, manifest, kind, where);
  }
  check_coverage(manifest, kind, path);
}

std::string to_json(const FilePart& part) {
  Json tensors = Json::array();
  for (const LogicalTensor& tensor : part.tensors) tensors.push_back(to_json(tensor));
  return write_json({{"file", to_json(part.file)}, {"tensors", tensors}});
}

FilePart parse_file_part(std::string_view text) {
  const std::string where = "the list of a rank's pieces";
  const Json root = parse_json(text, where);
  FilePart part{parse_file(member(root, "file", where), where), {}};
  for (const Json& tensor : to_array(member(root, "tensors", where), where))
    part.tensors.push_back(parse_tensor(tensor, where));
  return part;
}

std::vector<LogicalTensor> merge_parts(std::span<const FilePart> parts) {
  std::vector<LogicalTensor> merged;
  std::map<std::pair<std::string, Role>, size_t> index;
  for (size_t file = 0; file < parts.size(); ++file) {
    for (const LogicalTensor& tensor : parts[file].tensors) {
      const auto key = std::pair(tensor.info.name, tensor.info.role);
      const auto [place, is_new] = index.emplace(key, merged.size());
      if (is_new) merged.push_back({tensor.info, {}});
      LogicalTensor& whole = merged[place->second];
      if (whole.info != tensor.info)
        fail(ErrorKind::kInternal, "publish checkpoint: ranks disagree about the shape of '{}'",
             tensor.info.name);
      for (Piece piece : tensor.pieces) {
        piece.file = uint32_t(file);
        whole.pieces.push_back(piece);
      }
    }
  }
  for (LogicalTensor& tensor : merged)
    std::sort(tensor.pieces.begin(), tensor.pieces.end(),
              [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  return merged;
}

}  // namespace gxp
