#include "lib/data/documents/record_source.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";  // of JSON

std::string_view without_blanks(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

// Finds where an element of an array ends, in bytes that arrive one after another.
class ElementEnd {
 public:
  enum Place { kLater, kBefore, kBehind };
  // Where the element ends, seen from this byte.
  Place look_at(char c) {
    if (in_string_) {
      if (is_escaped_)
        is_escaped_ = false;
      else if (c == '\\')
        is_escaped_ = true;
      else
        in_string_ = c != '"';
      return kLater;
    }
    if (c == '"') in_string_ = true;
    if (c == '{' || c == '[') ++depth_;
    if (depth_ == 0) return c == ',' || c == ']' || c == '}' ? kBefore : kLater;
    return (c == '}' || c == ']') && --depth_ == 0 ? kBehind : kLater;
  }

 private:
  bool in_string_ = false, is_escaped_ = false;
  uint64_t depth_ = 0;
};

}  // namespace

RecordSource::RecordSource(ByteWindow window, RecordLayout layout)
    : window_(std::move(window)), layout_(layout) {}

std::optional<RawRecord> RecordSource::next() {
  return layout_ == RecordLayout::kLines ? next_line() : next_element();
}

std::optional<RawRecord> RecordSource::next_line() {
  for (size_t searched = 0;;) {
    const std::string_view view = window_.view();
    const size_t end = view.find('\n', searched);
    const bool is_last = end == std::string_view::npos;
    if (is_last && window_.extend()) {
      searched = view.size();
      continue;
    }
    // extend() invalidates a view even at the end.
    const std::string_view line = is_last ? window_.view() : view.substr(0, end);
    if (is_last && line.empty()) return std::nullopt;
    window_.drop(line.size() + (is_last ? 0 : 1));
    const uint64_t number = line_++;
    searched = 0;
    if (const std::string_view text = without_blanks(line); !text.empty())
      return RawRecord{text, number, is_last};
  }
}

void RecordSource::refuse(std::string_view why) const {
  fail(ErrorKind::kCorrupt, "read {}, line {}: {}", window_.path(), line_, why);
}

std::optional<char> RecordSource::skip_blanks() {
  for (;;) {
    const std::string_view view = window_.view();
    const size_t blanks = std::min(view.find_first_not_of(kBlanks), view.size());
    line_ += uint64_t(std::count(view.begin(), view.begin() + std::ptrdiff_t(blanks), '\n'));
    window_.drop(blanks);
    if (blanks < view.size()) return view[blanks];
    if (!window_.extend()) return std::nullopt;
  }
}

std::optional<RawRecord> RecordSource::next_element() {
  if (has_ended_) return std::nullopt;
  if (!has_begun_) {
    GXP_ASSERT(skip_blanks() == '[');
    window_.drop(1);
    has_begun_ = true;
  }
  std::optional<char> first = skip_blanks();
  if (first == ',' && elements_ > 0) {
    window_.drop(1);
    first = skip_blanks();
    if (first == ']') refuse("the array ends behind a comma");
  } else if (first && first != ']' && elements_ > 0) {
    refuse("no comma between two elements of the array");
  }
  if (!first) refuse("the array has no end; the file is cut");
  if (first == ']') {
    window_.drop(1);
    if (skip_blanks()) refuse("something follows the end of the array");
    has_ended_ = true;
    return std::nullopt;
  }
  return take_element();
}

RawRecord RecordSource::take_element() {
  ElementEnd end;
  ElementEnd::Place place = ElementEnd::kLater;
  size_t length = 0;
  do {
    const std::string_view view = window_.view();
    while (length < view.size() && place == ElementEnd::kLater) place = end.look_at(view[length++]);
    if (place == ElementEnd::kLater && !window_.extend())
      refuse("the array has no end; the file is cut");
  } while (place == ElementEnd::kLater);
  const std::string_view text =
      window_.view().substr(0, place == ElementEnd::kBefore ? length - 1 : length);
  window_.drop(text.size());
  const RawRecord record{without_blanks(text), line_, false};
  line_ += uint64_t(std::ranges::count(text, '\n'));
  ++elements_;
  return record;
}

}  // namespace gxp
