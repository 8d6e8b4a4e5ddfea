#include "lib/base/json/json.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr size_t kMaxDepth = 64;

// The numbers of Python's json that are not JSON's, as the texts that stand for them. -Infinity
// comes before Infinity, which it contains.
struct PythonNumber {
  std::string_view word;
  std::string_view text;  // with its quotes
};
constexpr std::array kPythonNumbers = {PythonNumber{"-Infinity", R"("\u0000-Infinity")"},
                                       PythonNumber{"Infinity", R"("\u0000Infinity")"},
                                       PythonNumber{"NaN", R"("\u0000NaN")"}};

// Where the string that begins at `at` ends: after its quote, or at the text's end.
size_t end_of_string(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

[[noreturn]] void wrong_type(const std::string& where, const char* wanted, const Json& value) {
  fail(ErrorKind::kCorrupt, "{}: {} expected, found {}", where, wanted, value.type_name());
}

// Builds the value while the text is read, in linear time. nlohmann's parser with a callback looks
// through the whole parent at the end of each object, which takes minutes for 100,000 of them.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const std::string& file) : file_(file) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    check_depth();
    auto& members = open_.back()->get_ref<Json::object_t&>();
    const auto [member, is_new] = members.try_emplace(name);
    if (!is_new)
      fail(ErrorKind::kCorrupt, "read {}: the key '{}' occurs twice in one object", file_, name);
    member_ = &member->second;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    fail(ErrorKind::kCorrupt, "read {}: {}", file_, error.what());
  }

 private:
  void check_depth() const {
    if (open_.size() > kMaxDepth)
      fail(ErrorKind::kCorrupt, "read {}: JSON is nested deeper than {}", file_, kMaxDepth);
  }

  // Where the next value belongs: the root, an array's end, or the member of the last key.
  Json& place() {
    check_depth();
    if (open_.empty()) return root_;
    if (open_.back()->is_object()) return *member_;
    return open_.back()->get_ref<Json::array_t&>().emplace_back();
  }

  bool add(Json value) {
    place() = std::move(value);
    return true;
  }

  bool open(Json empty) {
    Json& value = place();
    value = std::move(empty);
    open_.push_back(&value);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& file_;
  Json root_;
  std::vector<Json*> open_;  // from the root on; an array does not grow while one in it is open
  Json* member_ = nullptr;   // of the innermost object
};

}  // namespace

Json parse_json(std::string_view text, const std::string& file) {
  Builder builder(file);
  Json::sax_parse(text, &builder);
  return builder.take();
}

Json parse_python_json(std::string_view text, const std::string& file) {
  std::string strict;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const auto* const number = std::ranges::find_if(
        kPythonNumbers, [&](const PythonNumber& each) { return rest.starts_with(each.word); });
    const bool is_number = number != kPythonNumbers.end();
    const size_t end = is_number         ? at + number->word.size()
                       : text[at] == '"' ? end_of_string(text, at)
                                         : at + 1;
    const std::string_view part = text.substr(at, end - at);
    if (std::ranges::find(kPythonNumbers, part, &PythonNumber::text) != kPythonNumbers.end())
      fail(ErrorKind::kCorrupt,
           "read {}: the string {} is reserved: gxp stores a non-finite number so", file, part);
    strict += is_number ? number->text : part;
    at = end;
  }
  return parse_json(strict, file);
}

std::string write_python_json(const Json& value) {
  std::string text = value.dump(2);
  for (const PythonNumber& number : kPythonNumbers) {
    for (size_t at = text.find(number.text); at != std::string::npos;
         at = text.find(number.text, at + number.word.size()))
      text.replace(at, number.text.size(), number.word);
  }
  return text;
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
