// The syntaxes of source.h: text to a tree. All throw kConfig, "PATH:LINE: what is wrong", where the
// text is not of the syntax, a key occurs twice in one object, or objects are nested deeper than 64.
#pragma once

#include <string>
#include <string_view>

#include "lib/tools/imports/source.h"

namespace gxp {

inline constexpr int kMaxSourceDepth = 64;

// JSON, and HJSON (https://hjson.github.io/syntax.html): comments, keys and strings without quotes,
// line ends in place of commas, strings of several lines between '''.
SourceTree parse_hjson(std::string_view text, const std::string& path);

// YAML 1.1 as PyYAML's safe_load reads it: no, off and false are one value, 1e5 is a string.
SourceTree parse_yaml_tree(const std::string& text, const std::string& path);

SourceTree parse_toml_tree(std::string_view text, const std::string& path);

// A shell's command line: words between blanks, quotes, '\' before a line end, comments. An object of
// one key, "words".
SourceTree parse_command_words(std::string_view text, const std::string& path);

}  // namespace gxp
