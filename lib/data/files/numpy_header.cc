#include "lib/data/files/numpy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr size_t kMagicBytes = 8;  // "\x93NUMPY", and the version

[[noreturn]] void refuse(const std::string& what, std::string_view why) {
  fail(ErrorKind::kCorrupt, "{} {}", what, why);
}

// What follows 'key': in the dictionary, without blanks before it.
std::string_view value_of(std::string_view dictionary, std::string_view key,
                          const std::string& what) {
  const std::string quoted = fmt::format("'{}':", key);
  const size_t found = dictionary.find(quoted);
  if (found == std::string_view::npos) refuse(what, fmt::format("has no '{}'", key));
  const std::string_view value = dictionary.substr(found + quoted.size());
  return value.substr(std::min(value.find_first_not_of(' '), value.size()));
}

std::string type_of(std::string_view value, const std::string& what) {
  if (!value.starts_with('\'')) refuse(what, "holds records, not numbers");
  value.remove_prefix(1);
  return std::string(value.substr(0, value.find('\'')));
}

std::vector<uint64_t> shape_of(std::string_view value, const std::string& what) {
  if (!value.starts_with('(')) refuse(what, "has no shape");
  std::vector<uint64_t> shape;
  const char* const end = value.data() + value.size();
  for (const char* at = value.data() + 1; at < end && *at != ')';) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    const auto [next, error] = std::from_chars(at, end, shape.emplace_back());
    if (error != std::errc()) refuse(what, "has no shape");
    at = next;
  }
  return shape;
}

// The length of the dictionary, in two bytes or, from version 2 on, in four.
size_t dictionary_bytes(std::string_view head, size_t width) {
  size_t bytes = 0;
  for (size_t i = width; i-- > 0;)
    bytes = bytes << 8 | static_cast<unsigned char>(head[kMagicBytes + i]);
  return bytes;
}

}  // namespace

NumpyHeader parse_numpy_header(std::string_view head, const std::string& what) {
  if (head.size() < kMagicBytes + 4) refuse(what, "is cut");
  const size_t width = head[6] == 1 ? 2 : 4;
  if (head[6] < 1 || head[6] > 3) refuse(what, fmt::format("has version {}", int(head[6])));
  NumpyHeader header;
  const size_t begin = kMagicBytes + width;
  header.bytes = begin + dictionary_bytes(head, width);
  if (header.bytes > head.size()) refuse(what, "is truncated, or too long for an array of numbers");
  const std::string_view dictionary = head.substr(begin, header.bytes - begin);
  header.type = type_of(value_of(dictionary, "descr", what), what);
  header.columns_first = value_of(dictionary, "fortran_order", what).starts_with("True");
  header.shape = shape_of(value_of(dictionary, "shape", what), what);
  return header;
}

}  // namespace gxp
