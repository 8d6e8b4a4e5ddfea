#include "lib/tools/topology/read/xml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/text/xml_escape.h"
#include "lib/tools/topology/read/xml_fields.h"
#include "lib/topo/model/text_parts.h"

namespace gxp {
namespace {

constexpr size_t kMaxShown = 40;  // of a wrong value, in messages

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  if (!text.starts_with("0x") && !text.starts_with("0X")) return whole_number<double>(text);
  const auto value = whole_number<uint64_t>(text.substr(2), 16);
  return value ? std::optional(double(*value)) : std::nullopt;
}

std::string to_attribute(std::string_view name, double value) {
  std::string text = fmt::format("{:f}", value);
  if (name != "latency" || parse_number(text) != value) text = fmt::format("{}", value);
  return text;
}

XmlText::XmlText(std::string_view text, std::string name) : name_(std::move(name)) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') line_ends_.push_back(i);
  }
  if (text.size() > kMaxXmlBytes) {
    fail_at({1, 1}, fmt::format("it has more than {}", format_bytes(kMaxXmlBytes)));
  }
  if (std::ranges::count(text, '<') > ptrdiff_t(kMaxXmlElements)) {
    fail_at({1, 1}, fmt::format("it has more than {} elements", kMaxXmlElements));
  }
  const auto result =
      document_.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!result) {
    fail_at(place_of(std::min(size_t(std::max(result.offset, ptrdiff_t{0})), text.size())),
            result.description());
  }
}

pugi::xml_node XmlText::root(const char* called) const {
  const pugi::xml_node root = document_.document_element();
  if (std::string_view(root.name()) != called) {
    fail_at(root, fmt::format("there is no <{}>, but <{}>", called,
                              std::string_view(root.name()).substr(0, kMaxShown)));
  }
  for (pugi::xml_node next = root.next_sibling(); next; next = next.next_sibling()) {
    if (next.type() == pugi::node_element)
      fail_at(next, fmt::format("a second <{}>: files were joined into one; give each by itself",
                                std::string_view(next.name()).substr(0, kMaxShown)));
  }
  return root;
}

SourceLocation XmlText::place_of(size_t offset) const {
  const auto line = std::ranges::lower_bound(line_ends_, offset);
  const size_t start = line == line_ends_.begin() ? 0 : *(line - 1) + 1;
  return {.line = int(line - line_ends_.begin()) + 1, .column = int(offset - start) + 1};
}

SourceLocation XmlText::place_of(const pugi::xml_node& node) const {
  // The offset is that of the name, which follows '<'.
  return place_of(size_t(std::max(node.offset_debug(), ptrdiff_t{1})) - 1);
}

std::string XmlText::at(const pugi::xml_node& node) const {
  return at_place(name_, place_of(node));
}

XmlError::XmlError(const std::string& name, SourceLocation where, std::string_view reason)
    : Error(ErrorKind::kCorrupt,
            fmt::format("read topology {}: {}", at_place(name, where), reason)),
      place(where),
      why(reason) {}

void XmlText::fail_at(SourceLocation place, std::string_view why) const {
  throw XmlError(name_, place, why);
}

void XmlText::fail_at(const pugi::xml_node& node, std::string_view why) const {
  fail_at(place_of(node), why);
}

std::vector<pugi::xml_attribute> XmlText::attributes(const pugi::xml_node& node) const {
  std::vector<pugi::xml_attribute> all;
  for (const pugi::xml_attribute attribute : node.attributes()) {
    if (all.size() == size_t(kMaxXmlAttributes))
      fail_at(node, fmt::format("an element has more than {} attributes", kMaxXmlAttributes));
    all.push_back(attribute);
  }
  return all;
}

double XmlText::number(const pugi::xml_node& node, const pugi::xml_attribute& attribute,
                       NumberRange range) const {
  const std::string_view text = attribute.value();
  const std::optional<double> value = parse_number(text);
  if (!value || !(*value >= range.low && *value <= range.high)) {
    fail_at(node, fmt::format("<{} {}=\"{}\">: must be a number from {} to {}", node.name(),
                              attribute.name(), text.substr(0, kMaxShown), range.low, range.high));
  }
  return *value;
}

void XmlWriter::end_start_tag() {
  if (in_start_tag_) text_ += ">\n";
  in_start_tag_ = false;
}

void XmlWriter::open(std::string_view element) {
  end_start_tag();
  text_.append(2 * open_.size(), ' ');
  text_ += '<';
  text_ += element;
  open_.emplace_back(element);
  in_start_tag_ = true;
}

void XmlWriter::attribute(std::string_view name, std::string_view value) {
  text_ += fmt::format(" {}=\"", name);
  // Readers take an end of line within an attribute for a space.
  for (const char c : escaped_for_xml(value))
    text_ += c == '\n' || c == '\r' || c == '\t' ? fmt::format("&#{};", int(c)) : std::string(1, c);
  text_ += '"';
}

void XmlWriter::add_verbatim(std::string_view xml) {
  if (xml.empty()) return;
  end_start_tag();
  text_ += xml;
  if (!xml.ends_with('\n')) text_ += '\n';
}

void XmlWriter::close() {
  if (in_start_tag_) {
    text_ += "/>\n";
  } else {
    text_.append(2 * (open_.size() - 1), ' ');
    text_ += fmt::format("</{}>\n", open_.back());
  }
  in_start_tag_ = false;
  open_.pop_back();
}

}  // namespace gxp
