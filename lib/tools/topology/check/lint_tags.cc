// NCCL reads XML with a reader of its own, which knows less than XML allows and has fixed sizes
// (src/graph/xml.cc, xml.h and topo.h of NCCL 2.30).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <pugixml.hpp>
#include <utility>

#include "lib/tools/topology/check/lint_rules.h"
#include "lib/topo/nccl/nccl_rules.h"

namespace gxp {
namespace {

constexpr size_t kMostAttributes = 16;  // MAX_ATTR_COUNT
constexpr size_t kMostChildren = 640;   // MAX_SUBS
// MAX_STR_LEN is 255; the closing quote and the end of the string must fit before its last place.
constexpr size_t kLongestValue = 253;
constexpr size_t kTagShown = 20;

// Whether a line ends, or a tab stands, in the tag with which `text` begins.
bool is_broken(std::string_view text) {
  char quote = 0;
  for (const char c : text) {
    if (quote == 0 && c == '>') return false;
    if (quote == 0 && (c == '\n' || c == '\r' || c == '\t')) return true;
    if (c == quote)
      quote = 0;
    else if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
  }
  return false;
}

std::string_view tag_name(std::string_view tag) {
  return tag.substr(1, std::min(tag.find_first_of(" \t\r\n/>", 2), tag.size()) - 1);
}

bool is_in_comment(std::string_view text, size_t at) {
  const size_t start = text.rfind("<!--", at);
  return start != text.npos && text.find("-->", start) > at;
}

// The nodes of a document in the order of the text.
class NodeReader final : public pugi::xml_tree_walker {
 public:
  explicit NodeReader(std::string_view text) : text_(text) {}
  bool for_each(pugi::xml_node& node) override {
    const auto value_or_name = size_t(std::max(node.offset_debug(), ptrdiff_t{0}));
    if (node.type() == pugi::node_pcdata) {
      add_text(value_or_name);
    } else if (node.type() != pugi::node_comment) {
      add_tag(node, text_.rfind('<', value_or_name));
    }
    return true;
  }
  std::vector<LintNode> nodes;

 private:
  // NCCL knows blanks and line ends as space.
  void add_text(size_t start) {
    const size_t found = text_.find_first_not_of(" \n\r", start);
    if (found >= text_.size() || text_[found] == '<') return;
    nodes.push_back({.kind = LintNode::Kind::kText,
                     .text = text_.substr(found, text_.find('<', found) - found),
                     .offset = found});
  }

  void add_tag(const pugi::xml_node& node, size_t start) {
    const std::string_view tag = text_.substr(start);
    LintNode& added = nodes.emplace_back();
    added.text = tag_name(tag);
    added.offset = start;
    if (node.type() != pugi::node_element) return;
    added.kind = LintNode::Kind::kElement;
    added.is_broken = is_broken(tag);
    for (const pugi::xml_attribute attribute : node.attributes()) {
      ++added.attributes;
      added.longest_value =
          std::max(added.longest_value, std::string_view(attribute.value()).size());
    }
    children_.resize(size_t(depth()) + 1);
    added.child = ++children_.back();
  }

  std::string_view text_;
  std::vector<size_t> children_;  // so far, of the elements above
};

SourceLocation place_of(const LintSubject& subject, const LintNode& node) {
  const std::string_view before = subject.text.substr(0, node.offset);
  const size_t line_end = before.rfind('\n');
  const size_t column = line_end == before.npos ? node.offset : node.offset - line_end - 1;
  return {int(std::ranges::count(before, '\n')) + 1, int(column) + 1};
}

// The first node for which `is_wrong`, with the number of them.
template <class IsWrong, class Describe>
void report_first(const LintSubject& subject, const LintReporter& report, IsWrong is_wrong,
                  Describe describe) {
  const auto first = std::ranges::find_if(subject.nodes, is_wrong);
  if (first == subject.nodes.end()) return;
  const auto times = std::ranges::count_if(subject.nodes, is_wrong);
  report(place_of(subject, *first), "{}{}", describe(*first),
         times == 1 ? "" : fmt::format(" ({} times)", times));
}

bool is_element(const LintNode& node) { return node.kind == LintNode::Kind::kElement; }

void check_declaration(const LintSubject& subject, const LintReporter& report) {
  report_first(
      subject, report, [](const LintNode& node) { return node.kind == LintNode::Kind::kOther; },
      [](const LintNode& node) { return fmt::format("<{}>", node.text.substr(0, kTagShown)); });
}

void check_between(const LintSubject& subject, const LintReporter& report) {
  report_first(
      subject, report, [](const LintNode& node) { return node.kind == LintNode::Kind::kText; },
      [](const LintNode& node) {
        return node.text[0] == '\t'
                   ? "a tab between elements"
                   : fmt::format("\"{}\" between elements", node.text.substr(0, kTagShown));
      });
}

void check_broken_tag(const LintSubject& subject, const LintReporter& report) {
  report_first(
      subject, report, [](const LintNode& node) { return node.is_broken; },
      [](const LintNode& node) {
        return fmt::format("<{}> has a line break or a tab in it", node.text.substr(0, kTagShown));
      });
}

void check_element_count(const LintSubject& subject, const LintReporter& report) {
  const auto count = std::ranges::count_if(subject.nodes, is_element);
  if (count < kNcclMostXmlNodes) return;
  auto left = kNcclMostXmlNodes;
  const auto last = std::ranges::find_if(
      subject.nodes, [&](const LintNode& node) { return is_element(node) && --left == 0; });
  report(place_of(subject, *last), "element {} of {}; NCCL gives up here", kNcclMostXmlNodes,
         count);
}

void check_child_count(const LintSubject& subject, const LintReporter& report) {
  for (const LintNode& node : subject.nodes) {
    if (node.child == kMostChildren + 1)
      report(place_of(subject, node), "child {} of one element", node.child);
  }
}

void check_attribute_count(const LintSubject& subject, const LintReporter& report) {
  for (const LintNode& node : subject.nodes) {
    if (node.attributes > kMostAttributes)
      report(place_of(subject, node), "<{}> has {} attributes", node.text, node.attributes);
  }
}

void check_long_value(const LintSubject& subject, const LintReporter& report) {
  for (const LintNode& node : subject.nodes) {
    if (node.longest_value > kLongestValue)
      report(place_of(subject, node), "<{}> has a value of {} characters",
             node.text.substr(0, kTagShown), node.longest_value);
  }
}

constexpr auto kTagsRules = [] {
  using enum Severity;
  return std::to_array<LintRule>({
      {"not-an-element", kError, "<?xml ...?>, <!DOCTYPE ...> or the like",
       "NCCL's own XML reader stops at it: \"expected >\"", "remove it; comments are allowed",
       check_declaration},
      {"text-between-elements", kError, "tabs or text between elements",
       "NCCL's own XML reader stops at them: \"expecting '<'\"; of space it knows blanks and line "
       "ends",
       "indent with blanks", check_between},
      {"broken-tag", kError, "a line break or a tab within a tag",
       "NCCL's own XML reader stops at it: attributes must be on one line, one blank apart",
       "write the whole tag in one line", check_broken_tag},
      {"too-many-elements", kError, "256 elements or more",
       "NCCL reads at most 255 from a topology file and then gives up",
       "leave out devices that are neither GPU nor NIC nor above one", check_element_count},
      {"too-many-children", kError, "more than 640 elements in one", "NCCL gives up after 640",
       "leave out devices that are neither GPU nor NIC nor above one", check_child_count},
      {"too-many-attributes", kError, "more than 16 attributes",
       "NCCL keeps the first 16 and silently ignores the others",
       "leave out attributes that NCCL does not know", check_attribute_count},
      {"long-value", kError, "an attribute of more than 253 characters",
       "NCCL gives up: its buffer holds no more", "shorten it", check_long_value},
  });
}();

}  // namespace

std::vector<LintNode> read_nodes(std::string_view text) {
  using namespace pugi;
  xml_document document;  // of a text that is not sound, what comes before the fault
  document.load_buffer(
      text.data(), text.size(),
      parse_fragment | parse_ws_pcdata | parse_declaration | parse_doctype | parse_pi | parse_cdata,
      encoding_utf8);
  NodeReader reader(text);
  document.traverse(reader);
  for (size_t at = text.find("</"); at < text.size(); at = text.find("</", at + 1)) {
    const std::string_view tag = text.substr(at);
    if (!is_broken(tag) || is_in_comment(text, at)) continue;
    reader.nodes.push_back({.kind = LintNode::Kind::kBrokenEnd,
                            .text = tag_name(tag),
                            .offset = at,
                            .is_broken = true});
  }
  std::ranges::sort(reader.nodes, {}, &LintNode::offset);
  return std::move(reader.nodes);
}

std::span<const LintRule> lint_tags_rules() { return kTagsRules; }

}  // namespace gxp
