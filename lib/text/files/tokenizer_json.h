// tokenizer.json, as the tokenizers library 0.23 reads it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/json/json.h"
#include "lib/text/pipeline/bpe_tokenizer.h"

namespace gxp {

// The whole file. kCorrupt: what the library refuses, too; kConfig: what gxp does not compute.
// truncation and padding are ignored with a line in the log: training wants whole documents, and
// transformers switches both off. `where` is for messages: "read FILE".
TokenizerParts parts_of_json(const Json& file, const std::string& where);

// Parts of it. Null blocks are absent.
struct VocabularyJson {
  BpeModel model;
  std::vector<std::string> texts;  // of each id
  std::vector<bool> exists;
};
VocabularyJson read_model(const Json& model, bool is_byte_level, const std::string& where);
std::vector<AddedToken> read_added_tokens(const Json& list, const VocabularyIds& vocabulary,
                                          const std::string& where);
std::vector<std::unique_ptr<NormalizerStep>> read_normalizer(const Json& block,
                                                             const std::string& where);
struct PreTokenizerJson {
  std::vector<std::unique_ptr<PreTokenizerStep>> steps;
  const WordRules* word_rules = nullptr;
  bool is_byte_level = false, asks_for_source = false;
};
PreTokenizerJson read_pre_tokenizer(const Json& block, const std::string& where);
struct TextFrameIds {
  std::vector<int32_t> prefix, suffix;
};
TextFrameIds read_post_processor(const Json& block, const std::string& where);
// `texts` of tokens; ids of `added` ones that the vocabulary lacks are at its end.
DecoderRules read_decoder(const Json& block, const VocabularyJson& vocabulary,
                          const std::vector<AddedToken>& added, const std::string& where);

// Access to a block. kCorrupt: a value of another type.
bool flag(const Json& object, const char* key, bool otherwise, const std::string& where);
bool flag(const Json& object, const char* key, const std::string& where);  // must be there
std::string type_in(const Json& block, const std::string& where);
// The member, or null.
const Json& member_or_null(const Json& object, const char* key);
// The steps of a block: those of a Sequence under `key`, of Sequences in it, too, or the block alone.
std::vector<const Json*> steps_of(const Json& block, const char* key, const std::string& where);
// {"String": ...} or {"Regex": ...}
struct PatternJson {
  bool is_regex = false;
  std::string text;
};
PatternJson read_pattern(const Json& step, const std::string& where);

// Throws kConfig: gxp does not compute that. `what`: "its normalizer is Nmt".
[[noreturn]] void refuse_text(const std::string& where, std::string_view what);

}  // namespace gxp
