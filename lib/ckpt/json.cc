#include "lib/ckpt/json.h"

#include <set>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr int kMaxDepth = 64;

[[noreturn]] void wrong_type(const std::string& where, const char* wanted, const Json& value) {
  fail(ErrorKind::kCorrupt, "{}: {} expected, found {}", where, wanted, value.type_name());
}

}  // namespace

Json parse_json(std::string_view text, const std::string& file) {
  std::vector<std::set<std::string>> keys;  // of each open object
  const auto check = [&](int depth, Json::parse_event_t event, const Json& value) {
    if (depth > kMaxDepth)
      fail(ErrorKind::kCorrupt, "read {}: JSON is nested deeper than {}", file, kMaxDepth);
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      fail(ErrorKind::kCorrupt, "read {}: the key '{}' stands twice in one object", file,
           value.get<std::string>());
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& error) {
    fail(ErrorKind::kCorrupt, "read {}: {}", file, error.what());
  }
}

std::string write_json(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Json& member(const Json& object, const char* key, const std::string& where) {
  const auto found = to_object(object, where).find(key);
  if (found == object.end()) fail(ErrorKind::kCorrupt, "{}: '{}' is missing", where, key);
  return *found;
}

uint64_t to_unsigned(const Json& value, const std::string& where) {
  if (!value.is_number_unsigned()) wrong_type(where, "a whole number from 0", value);
  return value.get<uint64_t>();
}

std::string to_text(const Json& value, const std::string& where) {
  if (!value.is_string()) wrong_type(where, "a string", value);
  return value.get<std::string>();
}

const Json& to_array(const Json& value, const std::string& where) {
  if (!value.is_array()) wrong_type(where, "an array", value);
  return value;
}

const Json& to_object(const Json& value, const std::string& where) {
  if (!value.is_object()) wrong_type(where, "an object", value);
  return value;
}

std::vector<uint64_t> to_numbers(const Json& value, const std::string& where) {
  std::vector<uint64_t> numbers;
  for (const Json& number : to_array(value, where)) numbers.push_back(to_unsigned(number, where));
  return numbers;
}

}  // namespace gxp
