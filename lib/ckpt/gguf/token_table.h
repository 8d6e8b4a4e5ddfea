// Parts of tokenizer.h; only the .cc files of this folder include it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/json/json.h"
#include "lib/ckpt/gguf/header.h"
#include "lib/text/files/sentencepiece_file.h"

namespace gxp {

// Throws: llama.cpp has no such tokenizer.
template <class... Args>
[[noreturn]] void refuse_tokenizer(std::string_view file, fmt::format_string<Args...> format,
                                   Args&&... args) {
  fail(ErrorKind::kConfig,
       "write a GGUF file: {}: {}; a copy of the directory without the tokenizer's files gives a "
       "file without a tokenizer",
       file, fmt::format(format, std::forward<Args>(args)...));
}

// All tokens of a vocabulary, in the order of their ids; those that nobody sets are unused.
class TokenTable {
 public:
  TokenTable(std::string file, int vocab_size);
  void set(uint64_t id, std::string text, TokenKind type, float score = 0);
  // A token that is found in the text before it is split.
  void add(uint64_t id, const std::string& content, bool is_special);
  [[nodiscard]] std::optional<uint64_t> id_of(const std::string& text) const;
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }
  [[nodiscard]] TokenKind type(uint64_t id) const { return TokenKind(types_[id]); }
  // What llama.cpp leaves out.
  void warn(std::string text) { warnings_.push_back(std::move(text)); }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  // `model`: "gpt2" or "llama", of which only the second has scores.
  [[nodiscard]] std::vector<GgufKey> keys(const std::string& model, const std::string& pre) const;

 private:
  std::string file_;
  std::vector<std::string> texts_;
  std::vector<float> scores_;
  std::vector<int32_t> types_;
  std::map<std::string, uint64_t> ids_;
  std::vector<std::string> warnings_;
};

// The files of a directory, parsed; null where there is no such file.
struct TokenizerJsons {
  std::string file = {};  // the path of the first, for messages
  Json tokenizer = {};    // tokenizer.json, or the same of vocab.json and merges.txt
  Json config = {};       // tokenizer_config.json
  Json model = {};        // config.json
};

// Puts added_tokens of tokenizer.json and added_tokens_decoder of tokenizer_config.json in.
void add_tokens(const TokenizerJsons& jsons, TokenTable& table);

// Of a byte-level tokenizer.json.
std::vector<GgufKey> byte_level_keys(const TokenizerJsons& jsons, TokenTable& table);
// Of a tokenizer.json with a fallback to bytes.
std::vector<GgufKey> byte_fallback_keys(const TokenizerJsons& jsons, TokenTable& table);
// Of a tokenizer.model.
std::vector<GgufKey> sentencepiece_keys(const std::string& path, TokenTable& table);

// The ids of the tokens with a role, which of them begin and end a text, and the chat templates.
// `jinja`: the text of chat_template.jinja, or "".
std::vector<GgufKey> special_token_keys(const TokenizerJsons& jsons, const std::string& jinja,
                                        const TokenTable& table);

// The value, or null for an absent key and for what is no object.
Json value_in(const Json& object, std::string_view key);
// "BPE" of {"type": "BPE"}; "null" of null.
std::string type_of(const Json& object);

}  // namespace gxp
