#include "lib/text/unicode/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lib/base/error.h"
#include "lib/text/unicode/char_class.h"
#include "lib/text/unicode/characters.h"

namespace gxp {
namespace {

constexpr char32_t kFirstComposing = 0x300;  // all text below is in normal form C

struct Caseless {
  char32_t first, last;
  int delta;
};
// Lower case that is newer than Unicode 14, measured with tokenizers 0.23.3.
constexpr std::array kNewLowerCase = {
    Caseless{0x1c89, 0x1c89, 1},   Caseless{0xa7cb, 0xa7cb, -42343}, Caseless{0xa7cc, 0xa7cc, 1},
    Caseless{0xa7ce, 0xa7ce, 1},   Caseless{0xa7d2, 0xa7d2, 1},      Caseless{0xa7d4, 0xa7d4, 1},
    Caseless{0xa7da, 0xa7da, 1},   Caseless{0xa7dc, 0xa7dc, -42561}, Caseless{0x10d50, 0x10d65, 32},
    Caseless{0x16ea0, 0x16eb8, 27}};

bool is_compatibility(NormalForm form) {
  return form == NormalForm::kNfkc || form == NormalForm::kNfkd;
}
bool composes(NormalForm form) { return form == NormalForm::kNfc || form == NormalForm::kNfkc; }

bool is_fixed(char32_t code) { return (CharClasses::table().of(code) & kFixedForm) != 0; }

// Whether a character may change together with the one before it: marks and jamo do, and what is
// compatible with those.
bool joins_previous(char32_t code) {
  if (code < kFirstComposing) return false;
  const auto is_within = [code](char32_t first, char32_t last) {
    return code >= first && code <= last;
  };
  return (CharClasses::table().of(code) & kMark) != 0 || is_within(0x1160, 0x11ff) ||
         is_within(0xd7b0, 0xd7ff) || is_within(0x3131, 0x318e) || is_within(0xff9e, 0xffdc);
}

// The normal form of a sequence that depends on nothing around it, in `codes`.
void normalize_sequence(NormalForm form, std::string_view text, std::vector<int32_t>& codes) {
  const int flags =
      UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (is_compatibility(form) ? UTF8PROC_COMPAT : 0);
  constexpr size_t kLongest = 32;  // the longest decomposition has 18 code points
  codes.clear();
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    at += character.length;
    std::array<int32_t, kLongest> parts{};
    const auto count = utf8proc_decompose_char(int32_t(character.code), parts.data(), kLongest,
                                               utf8proc_option_t(flags), nullptr);
    GXP_ASSERT(count > 0 && size_t(count) <= kLongest);
    codes.insert(codes.end(), parts.begin(), parts.begin() + count);
  }
  const auto rank = [](int32_t code) { return utf8proc_get_property(code)->combining_class; };
  // Not by utf8proc, which takes the square of the number of marks.
  for (auto begin = codes.begin(); begin != codes.end();) {
    const auto end =
        std::find_if(begin, codes.end(), [&](int32_t code) { return rank(code) == 0; });
    std::stable_sort(begin, end, [&](int32_t a, int32_t b) { return rank(a) < rank(b); });
    begin = end == codes.end() ? end : end + 1;
  }
  if (!composes(form)) return;
  const auto composed =
      utf8proc_normalize_utf32(codes.data(), utf8proc_ssize_t(codes.size()),
                               utf8proc_option_t(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  GXP_ASSERT(composed >= 0);
  codes.resize(size_t(composed));
}

// Where the sequence that begins at `begin` ends; whether its form may differ from itself.
struct Sequence {
  size_t end = 0;
  bool may_change = false;
};
Sequence sequence_at(NormalForm form, std::string_view text, size_t begin) {
  const char32_t never_change = form == NormalForm::kNfc ? kFirstComposing : 0x80;
  const Character first = character_at(text, begin);
  Sequence sequence = {begin + first.length, first.code >= never_change};
  if (is_fixed(first.code)) return {sequence.end, false};
  while (sequence.end < text.size()) {
    const Character next = character_at(text, sequence.end);
    if (!joins_previous(next.code) || is_fixed(next.code)) break;
    sequence.end += next.length;
    sequence.may_change = true;
  }
  return sequence;
}

char32_t lower_case(char32_t code) {
  for (const Caseless& row : kNewLowerCase)
    if (code >= row.first && code <= row.last) return char32_t(int64_t(code) + row.delta);
  return char32_t(utf8proc_tolower(int32_t(code)));
}

}  // namespace

void append_normal_form(NormalForm form, TextView text, TextBuilder& out) {
  std::vector<int32_t> codes;
  size_t kept = 0;  // what is not yet in `out`
  for (size_t at = 0; at < text.size();) {
    const Sequence sequence = sequence_at(form, text.text, at);
    if (sequence.may_change) {
      out.append(text.part(kept, at));
      normalize_sequence(form, text.text.substr(at, sequence.end - at), codes);
      std::string changed;
      for (const int32_t code : codes) append_character(changed, char32_t(code));
      out.append(changed, text.source(at, sequence.end));
      kept = sequence.end;
    }
    at = sequence.end;
  }
  out.append(text.part(kept, text.size()));
}

void append_lower_case(TextView text, TextBuilder& out) {
  constexpr char32_t kCapitalIWithDot = 0x130;
  std::string lower;
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text.text, at);
    lower.clear();
    if (character.code == kCapitalIWithDot)
      lower = "i\xcc\x87";
    else
      append_character(lower, lower_case(character.code));
    out.append(lower, text.source(at, at + character.length));
    at += character.length;
  }
}

}  // namespace gxp
