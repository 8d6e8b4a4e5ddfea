// XML from an untrusted file: the place of each element, and errors that name the place.
//   Limits  kMaxXmlBytes, kMaxXmlElements, kMaxXmlAttributes. The text is UTF-8. Entities that the
//           file declares, and files that it names, are not looked up.
//   Errors  kCorrupt: "read topology FILE:LINE:COLUMN: what is wrong".
#pragma once

#include <cstddef>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/topo/model/source_text.h"

namespace gxp {

inline constexpr size_t kMaxXmlBytes = 16u << 20;
inline constexpr size_t kMaxXmlElements = 1u << 18;
inline constexpr int kMaxXmlAttributes = 256;  // of an element

// The number that the whole of `text` is: decimal, or hexadecimal after 0x.
std::optional<double> parse_number(std::string_view text);

// kCorrupt, "read topology NAME:LINE:COLUMN: WHY", with the place and the reason on their own.
class XmlError : public Error {
 public:
  XmlError(const std::string& name, SourceLocation where, std::string_view reason);
  SourceLocation place;
  std::string why;
};

struct NumberRange {
  double low = 0;
  double high = 0;
};

class XmlText {
 public:
  // `name` is the file's, for messages.
  XmlText(std::string_view text, std::string name);

  // The outermost element, which must be called so and be the only one.
  [[nodiscard]] pugi::xml_node root(const char* called) const;
  [[nodiscard]] SourceLocation place_of(const pugi::xml_node& node) const;
  [[nodiscard]] std::string at(const pugi::xml_node& node) const;  // "FILE:LINE:COLUMN"
  [[noreturn]] void fail_at(const pugi::xml_node& node, std::string_view why) const;
  // Its attributes, no more than that limit.
  [[nodiscard]] std::vector<pugi::xml_attribute> attributes(const pugi::xml_node& node) const;
  // The number in the attribute. Anything else, or a number out of the range, is an error.
  [[nodiscard]] double number(const pugi::xml_node& node, const pugi::xml_attribute& attribute,
                              NumberRange range) const;

 private:
  [[nodiscard]] SourceLocation place_of(size_t offset) const;
  [[noreturn]] void fail_at(SourceLocation place, std::string_view why) const;

  std::string name_;
  std::vector<size_t> line_ends_;  // offsets
  pugi::xml_document document_;
};

// Writes elements as NCCL's reader needs them: one a line, two spaces a level, no space before
// "/>".
class XmlWriter {
 public:
  void open(std::string_view element);
  void attribute(std::string_view name, std::string_view value);
  void add_verbatim(std::string_view xml);  // between elements
  void close();
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void end_start_tag();

  std::string text_;
  std::vector<std::string> open_;
  bool in_start_tag_ = false;
};

}  // namespace gxp
