#include "lib/text/unicode/char_class.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "lib/text/unicode/code_set.h"

namespace gxp {
namespace {

constexpr struct {
  std::string_view name;
  uint16_t bit;
} kBits[] = {{"Lu", kUpper},
             {"Ll", kLower},
             {"Lt", kTitle},
             {"Lm", kModifier},
             {"Lo", kOtherLetter},
             {"M", kMark},
             {"N", kNumber},
             {"space", kSpace},
             {"P", kPunctuation},
             {"S", kSymbol},
             {"rust_numeric", kRustNumeric},
             {"rust_punctuation", kRustPunctuation},
             {"rust_word", kRustWord},
             {"accent", kAccent},
             {"fixed_form", kFixedForm}};

}  // namespace

CharClasses::CharClasses() {
  std::vector<uint16_t> all(0x110000);
  for (const auto& [name, bit] : kBits) {
    const CodeSet set = CodeSet::of_class(name);
    for (const CodeRange& range : set.ranges())
      for (char32_t code = range.first; code <= range.last; ++code) all[code] |= bit;
  }
  std::map<Page, uint16_t> numbers;
  std::vector<Page> pages;
  for (size_t first = 0; first < all.size(); first += kPageSize) {
    Page page;
    std::copy_n(all.begin() + ptrdiff_t(first), kPageSize, page.begin());
    const auto [found, is_new] = numbers.try_emplace(page, uint16_t(pages.size()));
    if (is_new) pages.push_back(page);
    page_of_[first >> kPageBits] = found->second;
  }
  pages_ = std::make_unique<Page[]>(pages.size());
  std::copy(pages.begin(), pages.end(), pages_.get());
}

const CharClasses& CharClasses::table() {
  static const CharClasses classes;
  return classes;
}

}  // namespace gxp
