#include "lib/text/unicode/code_set.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr char32_t kLastCode = 0x10ffff, kFirstSurrogate = 0xd800, kLastSurrogate = 0xdfff;

struct ClassRow {
  std::string_view name;
  std::string_view ranges;
};

constexpr std::array kClasses = {
#define CLASS(name, ranges) ClassRow{#name, ranges},
#include "lib/text/unicode/classes.inc"
#undef CLASS
};

// "41-5A" or "AA".
CodeRange range_of(std::string_view text) {
  const size_t dash = text.find('-');
  const auto code = [](std::string_view digits) {
    uint32_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    return char32_t(value);
  };
  return {code(text.substr(0, dash)), code(text.substr(dash == text.npos ? 0 : dash + 1))};
}

}  // namespace

CodeSet::CodeSet(std::vector<CodeRange> ranges) {
  std::ranges::sort(ranges, {}, &CodeRange::first);
  for (const CodeRange& range : ranges) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1)
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    else
      ranges_.push_back(range);
  }
}

CodeSet CodeSet::of_class(std::string_view name) {
  const auto* const row = std::ranges::find(kClasses, name, &ClassRow::name);
  if (row == kClasses.end()) return {};
  CodeSet taken, left_out;
  std::vector<CodeRange> taken_ranges, left_out_ranges;
  for (std::string_view rest = row->ranges; !rest.empty();) {
    std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const bool is_left_out = word.starts_with('!');
    if (is_left_out) word.remove_prefix(1);
    if (word.starts_with('@')) {
      CodeSet& set = is_left_out ? left_out : taken;
      set = set.with(of_class(word.substr(1)));
    } else {
      (is_left_out ? left_out_ranges : taken_ranges).push_back(range_of(word));
    }
  }
  left_out = left_out.with(CodeSet(left_out_ranges));
  return taken.with(CodeSet(taken_ranges)).within(left_out.complement());
}

CodeSet CodeSet::with(const CodeSet& other) const {
  std::vector<CodeRange> both = ranges_;
  both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
  return CodeSet(std::move(both));
}

CodeSet CodeSet::within(const CodeSet& other) const {
  CodeSet common;
  for (size_t i = 0, j = 0; i < ranges_.size() && j < other.ranges_.size();) {
    const CodeRange &a = ranges_[i], &b = other.ranges_[j];
    const CodeRange both = {std::max(a.first, b.first), std::min(a.last, b.last)};
    if (both.first <= both.last) common.ranges_.push_back(both);
    ++(a.last < b.last ? i : j);
  }
  return common;
}

CodeSet CodeSet::complement() const {
  CodeSet rest;
  char32_t next = 0;
  const auto close_gap = [&](char32_t end) {  // what lies between `next` and `end`
    if (next < end) rest.ranges_.push_back({next, end - 1});
  };
  const CodeSet taken = with(CodeSet({{kFirstSurrogate, kLastSurrogate}}));
  for (const CodeRange& range : taken.ranges_) {
    close_gap(range.first);
    next = range.last + 1;
  }
  close_gap(kLastCode + 1);
  return rest;
}

}  // namespace gxp
