// Files of tiktoken: a token and its rank, which is its id, on each line. What else a tokenizer has,
// its pattern and its special tokens, comes from the program that reads the file.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/text/pattern/pattern_dialect.h"
#include "lib/text/pipeline/added_tokens.h"
#include "lib/text/tokenizer.h"

namespace gxp {

struct RankFileRules {
  std::string pattern;  // in Rust's syntax
  std::map<std::string, int32_t> special_tokens;
};

// Whether a file's content looks like one.
bool is_rank_file(std::string_view content);
// The rules of the file NAME.tiktoken of that name (cl100k_base, o200k_base, r50k_base, p50k_base),
// or of one with `count` tokens that is a tokenizer.model (Llama 3); nothing: not known.
std::optional<RankFileRules> known_rank_rules(std::string_view name, size_t count);
size_t rank_file_size(std::string_view content);

// kCorrupt: a line that is no token and rank; kConfig: the pattern is refused. `file` is for messages.
std::shared_ptr<const Tokenizer> read_rank_file(std::string_view content, const std::string& file,
                                                const RankFileRules& rules);

}  // namespace gxp
