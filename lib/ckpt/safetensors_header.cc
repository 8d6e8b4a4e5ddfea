#include <algorithm>

#include "lib/base/error.h"
#include "lib/ckpt/json.h"
#include "lib/ckpt/safetensors.h"

namespace gxp {
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
  if (!dtype) fail(ErrorKind::kCorrupt, "{}: dtype '{}' is not known", where, dtype_name);
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

}  // namespace gxp
