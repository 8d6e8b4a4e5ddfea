// Texts in UTF-8 as Python's str treats them: by characters, with Python's white space. What depends
// on Unicode's other tables, upper and lower case above all, is done for ASCII and refused
// (JinjaError) for other text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

size_t character_count(std::string_view text);
std::vector<std::string_view> characters_of(std::string_view text);

enum class Sides { kLeft = 1, kRight = 2, kBoth = 3 };
// str.strip(), lstrip() and rstrip(): without white space, or the characters of `set`, at its sides.
std::string_view stripped(std::string_view text, Sides sides,
                          std::optional<std::string_view> set = std::nullopt);
// The bytes of the white space that `text` begins with.
size_t leading_space(std::string_view text);

struct SplitRule {
  std::optional<std::string_view> separator{};  // none: runs of white space
  int64_t limit = -1;                           // of splits; below 0: none
  bool from_right = false;
};
// str.split() and rsplit(). JinjaError: the separator is empty.
std::vector<std::string_view> split_text(std::string_view text, const SplitRule& rule);
// str.splitlines(), without the line ends.
std::vector<std::string_view> lines_of(std::string_view text);
size_t count_of(std::string_view text, std::string_view part);

std::string upper_text(std::string_view text);
std::string lower_text(std::string_view text);
std::string capitalized(std::string_view text);
// str.title(): every letter after something else than a letter is upper case.
std::string title_text(std::string_view text);
// The filter title: every character after a blank or one of -({[< is upper case.
std::string title_words(std::string_view text);

// markupsafe.escape().
std::string escaped_html(std::string_view text);

// str(value) and repr(value) of a float.
std::string float_text(double value);

}  // namespace gxp
