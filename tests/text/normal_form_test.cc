// Normal forms and lower case of the tokenizers library, and U+FFFD for what is not UTF-8.
#include "lib/text/unicode/normal_form.h"

#include "lib/text/unicode/valid_utf8.h"
#include "tests/catch.h"

namespace gxp {
namespace {

std::string form_of(NormalForm form, std::string_view text) {
  TextBuilder out(true);
  append_normal_form(form, {text, {}, 0}, out);
  CHECK(out.view().from.size() == out.size());
  return std::string(out.view().text);
}

std::string lower_of(std::string_view text) {
  TextBuilder out;
  append_lower_case({text, {}, 0}, out);
  return std::string(out.view().text);
}

}  // namespace

TEST_CASE("normal forms are those of the tokenizers library", "[text]") {
  const auto [form, text, expected] = GENERATE(table<NormalForm, std::string, std::string>({
      {NormalForm::kNfc, "", ""},
      {NormalForm::kNfc, "e\u0301 x", "\u00e9 x"},
      {NormalForm::kNfd, "\u00e9 x", "e\u0301 x"},
      {NormalForm::kNfc, "\u1100\u1161\u11a8", "\uac01"},
      {NormalForm::kNfd, "\uac01", "\u1100\u1161\u11a8"},
      {NormalForm::kNfc, "a\u0301\u0323", "\u1ea1\u0301"},
      {NormalForm::kNfc, "\u2126\u212b", "\u03a9\u00c5"},
      {NormalForm::kNfc, "\ufb01\u0958", "\ufb01\u0915\u093c"},
      {NormalForm::kNfkc, "\ufb01\u00bd\uff76\uff9e", "fi1\u20442\u30ac"},
      {NormalForm::kNfkd, "\u3131\u314f", "\u1100\u1161"},
      {NormalForm::kNfkc, "\u32ff\ua7f2\U0001fbf0",
       "\u32ff\ua7f2\U0001fbf0"},  // newer than its tables
      {NormalForm::kNfd, "a\u0301\u0898\u0323", "a\u0301\u0898\u0323"},
      {NormalForm::kNfc, "\ufffd\u0301", "\ufffd\u0301"},
  }));
  CHECK(form_of(form, text) == expected);
}

TEST_CASE("many marks are put in order in little time", "[text]") {
  std::string text = "a", expected = "a";
  for (int i = 0; i < 50'000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0323";
  for (int i = 0; i < 50'000; ++i) expected += i < 25'000 ? "\u0323" : "\u0301";
  CHECK((form_of(NormalForm::kNfd, text) == expected));
}

TEST_CASE("each character of a sequence has the place of all of it", "[text]") {
  TextBuilder out(true);
  append_normal_form(NormalForm::kNfc, {"xe\u0301y", {}, 10}, out);
  const TextView view = out.view();
  CHECK(view.source(0, 1) == ByteSpan{10, 11});
  CHECK(view.source(1, 3) == ByteSpan{11, 14});
  CHECK(view.source(3, 4) == ByteSpan{14, 15});
}

TEST_CASE("lower case is that of the tokenizers library", "[text]") {
  CHECK(lower_of("A\u00c9\u03a3 \u0130\u1c89\U00010d50\u01c5\u1e9e") ==
        "a\u00e9\u03c3 i\u0307\u1c8a\U00010d70\u01c6\u00df");
}

TEST_CASE("each maximal part of an invalid sequence becomes U+FFFD", "[text]") {
  const auto [bytes, replaced] = GENERATE(table<std::string, std::string>({
      {"", ""},
      {"a\u00e9\u20ac\U0001f600", "a\u00e9\u20ac\U0001f600"},
      {"\xe2\x82", "\ufffd"},
      {"\xe2\x82x", "\ufffdx"},
      {"\xf0\x9f\x98", "\ufffd"},
      {"\xc0\xaf", "\ufffd\ufffd"},
      {"\xe0\x80\xaf", "\ufffd\ufffd\ufffd"},
      {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
      {"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},
      {"\xf8\x88", "\ufffd\ufffd"},
      {"\x80 12345678901234567 \xff", "\ufffd 12345678901234567 \ufffd"},
      {"\xf0\x90\xe2\x82\xac", "\ufffd\u20ac"},
  }));
  CHECK(with_valid_utf8(bytes) == replaced);
  CHECK(is_valid_utf8(bytes) == (bytes == replaced));
}

}  // namespace gxp
