// NCCL reads XML with a reader of its own, which knows less than XML allows and has fixed sizes
// (src/graph/xml.cc, xml.h and topo.h of NCCL 2.30).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/tools/topology/check/lint_rules.h"
#include "lib/topo/nccl/nccl_rules.h"

namespace gxp {
namespace {

constexpr size_t kMostAttributes = 16;  // MAX_ATTR_COUNT
constexpr size_t kMostChildren = 640;   // MAX_SUBS
// MAX_STR_LEN is 255; the closing quote and the end of the string must fit before its last place.
constexpr size_t kLongestValue = 253;
constexpr size_t kTagShown = 20;

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::vector<XmlTag> scan() {
    std::vector<XmlTag> tags;
    XmlTag next;
    while (at_ < text_.size()) {
      if (text_.substr(at_).starts_with("<!--")) {
        skip_past("-->");
      } else if (text_[at_] == '<') {
        read_tag(next);
        tags.push_back(next);
        next = {};
      } else {
        read_between(next);
      }
    }
    return tags;
  }

 private:
  [[nodiscard]] SourcePlace place() const { return {line_, int(at_ - line_start_) + 1}; }

  void step() {
    if (text_[at_] == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    }
    ++at_;
  }

  void skip_past(std::string_view end) {
    const size_t found = text_.find(end, at_);
    const size_t stop = found == std::string_view::npos ? text_.size() : found + end.size();
    while (at_ < stop) step();
  }

  // Notes text before the next tag, if it is not space.
  void read_between(XmlTag& next) {
    const char c = text_[at_];
    if (c != ' ' && c != '\n' && c != '\r' && next.before.empty()) {
      next.before = text_.substr(at_, text_.find('<', at_) - at_);
      next.before_place = place();
    }
    step();
  }

  void read_tag(XmlTag& tag) {
    tag.place = place();
    const size_t start = at_ + 1;
    step();
    char quote = 0;
    size_t value_start = 0;
    for (; at_ < text_.size() && (quote != 0 || text_[at_] != '>'); step()) {
      const char c = text_[at_];
      if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
        value_start = at_ + 1;
        ++tag.attributes;
      } else if (c == quote) {
        quote = 0;
        tag.longest_value = std::max(tag.longest_value, at_ - value_start);
      } else if (quote == 0 && (c == '\n' || c == '\r' || c == '\t')) {
        tag.is_broken = true;
      }
    }
    const std::string_view inside = text_.substr(start, at_ - start);
    if (at_ < text_.size()) step();
    tag.name = inside.substr(0, inside.find_first_of(" \t\r\n/>", 1));
    using enum XmlTag::Kind;
    tag.kind = inside.starts_with('/')                              ? kClose
               : inside.starts_with('?') || inside.starts_with('!') ? kOther
               : inside.ends_with('/')                              ? kSingle
                                                                    : kOpen;
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  size_t line_start_ = 0;
};

// The first tag for which `is_wrong`, with the number of them.
template <class IsWrong, class Describe>
void say_first(const LintSubject& subject, const Say& say, IsWrong is_wrong, Describe describe,
               SourcePlace XmlTag::*place = &XmlTag::place) {
  const std::vector<XmlTag>& tags = subject.tags;
  const auto first = std::ranges::find_if(tags, is_wrong);
  if (first == tags.end()) return;
  const auto times = std::ranges::count_if(tags, is_wrong);
  say(*first.*place, "{}{}", describe(*first), times == 1 ? "" : fmt::format(" ({} times)", times));
}

bool is_element(const XmlTag& tag) {
  return tag.kind == XmlTag::Kind::kOpen || tag.kind == XmlTag::Kind::kSingle;
}

void check_declaration(const LintSubject& subject, const Say& say) {
  say_first(
      subject, say, [](const XmlTag& tag) { return tag.kind == XmlTag::Kind::kOther; },
      [](const XmlTag& tag) { return fmt::format("<{}>", tag.name.substr(0, kTagShown)); });
}

void check_between(const LintSubject& subject, const Say& say) {
  say_first(
      subject, say, [](const XmlTag& tag) { return !tag.before.empty(); },
      [](const XmlTag& tag) {
        return tag.before[0] == '\t'
                   ? "a tab between elements"
                   : fmt::format("\"{}\" between elements", tag.before.substr(0, kTagShown));
      },
      &XmlTag::before_place);
}

void check_broken_tag(const LintSubject& subject, const Say& say) {
  say_first(
      subject, say,
      [](const XmlTag& tag) { return tag.is_broken && tag.kind != XmlTag::Kind::kOther; },
      [](const XmlTag& tag) {
        return fmt::format("<{}> has a line break or a tab in it", tag.name.substr(0, kTagShown));
      });
}

void check_element_count(const LintSubject& subject, const Say& say) {
  const auto count = std::ranges::count_if(subject.tags, is_element);
  if (count < kNcclMostXmlNodes) return;
  auto left = kNcclMostXmlNodes;
  const auto tag = std::ranges::find_if(
      subject.tags, [&](const XmlTag& one) { return is_element(one) && --left == 0; });
  say(tag->place, "element {} of {}; NCCL gives up here", kNcclMostXmlNodes, count);
}

void check_child_count(const LintSubject& subject, const Say& say) {
  std::vector<size_t> children = {0};
  for (const XmlTag& tag : subject.tags) {
    if (tag.kind == XmlTag::Kind::kClose && children.size() > 1) children.pop_back();
    if (!is_element(tag)) continue;
    if (++children.back() == kMostChildren + 1)
      say(tag.place, "child {} of one element", kMostChildren + 1);
    if (tag.kind == XmlTag::Kind::kOpen) children.push_back(0);
  }
}

void check_attribute_count(const LintSubject& subject, const Say& say) {
  for (const XmlTag& tag : subject.tags) {
    if (tag.attributes > kMostAttributes && is_element(tag))
      say(tag.place, "<{}> has {} attributes", tag.name, tag.attributes);
  }
}

void check_long_value(const LintSubject& subject, const Say& say) {
  for (const XmlTag& tag : subject.tags) {
    if (tag.longest_value > kLongestValue && is_element(tag))
      say(tag.place, "<{}> has a value of {} characters", tag.name.substr(0, kTagShown),
          tag.longest_value);
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
       "NCCL keeps the first 16 and passes over the others in silence",
       "leave out attributes that NCCL does not know", check_attribute_count},
      {"long-value", kError, "an attribute of more than 253 characters",
       "NCCL gives up: it has room for no more", "shorten it", check_long_value},
  });
}();

}  // namespace

std::vector<XmlTag> scan_tags(std::string_view text) { return Scanner(text).scan(); }

std::span<const LintRule> lint_tags_rules() { return kTagsRules; }

}  // namespace gxp
