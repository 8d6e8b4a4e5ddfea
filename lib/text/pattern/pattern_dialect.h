// The regular expressions of tokenizers' files, in the syntax of PCRE2.
#pragma once

#include <string>
#include <string_view>

namespace gxp {

enum class PatternDialect {
  kOniguruma,   // Ruby's syntax: tokenizer.json
  kFancyRegex,  // Rust's syntax: tiktoken
};

// A pattern for PCRE2 with UTF, UCP and MULTILINE that matches what `pattern` matches. Classes become
// explicit code points of Unicode 16, groups do not capture. kConfig: a construct that PCRE2 or gxp
// does not have, by name; `where` is for messages ("read FILE").
std::string to_pcre2(std::string_view pattern, PatternDialect dialect, const std::string& where);

}  // namespace gxp
