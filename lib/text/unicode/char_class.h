// The classes of single characters, for code that looks at each character of a text.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

namespace gxp {

// Bits of CharClasses::of(): the rows of classes.inc.
enum CharBits : uint16_t {
  kUpper = 1 << 0,
  kLower = 1 << 1,
  kTitle = 1 << 2,
  kModifier = 1 << 3,
  kOtherLetter = 1 << 4,
  kMark = 1 << 5,
  kNumber = 1 << 6,
  kSpace = 1 << 7,
  kPunctuation = 1 << 8,       // \p{P}
  kSymbol = 1 << 9,            // \p{S}
  kRustNumeric = 1 << 10,      // Digits
  kRustPunctuation = 1 << 11,  // Punctuation
  kRustWord = 1 << 12,         // Whitespace, single_word
  kAccent = 1 << 13,           // StripAccents
  kFixedForm = 1 << 14,        // see normal_form.h
  kLetter = kUpper | kLower | kTitle | kModifier | kOtherLetter,
};

// 150 kB, made once a process. Threads: any. Cost of a look-up: two loads.
class CharClasses {
 public:
  static const CharClasses& table();
  [[nodiscard]] uint16_t of(char32_t code) const {
    return pages_[page_of_[code >> kPageBits]][code & (kPageSize - 1)];
  }

 private:
  CharClasses();
  static constexpr int kPageBits = 8;
  static constexpr size_t kPageSize = size_t{1} << kPageBits;
  using Page = std::array<uint16_t, kPageSize>;
  std::array<uint16_t, (0x110000 >> kPageBits)> page_of_{};
  std::unique_ptr<Page[]> pages_;
};

}  // namespace gxp
