// One JSON object of a file of them, and what it says under a name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

enum class JsonType { kMissing, kNull, kBool, kNumber, kText, kList, kObject };

// "nothing", "null", "true or false", "a number", "a string", "a list", "an object".
std::string_view to_string(JsonType type);

struct JsonValue {
  JsonType type = JsonType::kMissing;
  std::string_view text = {};  // kText: in UTF-8, without escapes
};

// Strict RFC 8259: all of a text is checked, not only what is asked for. Numbers may have any size,
// as in Python's json, and NaN is none. Of a name that an object has twice the last value counts, as
// in Python's json. Half of a surrogate pair (\ud800 alone) is refused, since it is no character.
// Objects nest up to 1,024 deep. Threads: one at a time. Cost: about 1 GB/s.
class JsonRecord {
 public:
  JsonRecord();
  ~JsonRecord();

  // Parses `text`, behind which ByteWindow::kPadding bytes can be read. "", or what is wrong with
  // it: "not UTF-8 (byte 14)", "JSON, but a list, not an object". What was found in the text before
  // is no longer valid.
  std::string parse(std::string_view text);
  // The value under path[0] in the object, under path[1] in that value, ... Valid until parse().
  [[nodiscard]] JsonValue find(std::span<const std::string> path) const;
  // The names in the object, in order.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  struct Parsed;
  std::unique_ptr<Parsed> parsed_;
};

}  // namespace gxp
