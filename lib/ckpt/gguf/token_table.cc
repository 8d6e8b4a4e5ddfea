#include "lib/ckpt/gguf/token_table.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace gxp {
namespace {

constexpr float kAddedScore = -1000, kUnusedScore = -10000;  // llama.cpp's converter's

// What is a control token although files call it an ordinary one.
bool looks_special(std::string_view text) {
  constexpr std::array<std::string_view, 4> kNames = {"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
  const auto is_between = [&](std::string_view begin, std::string_view end) {
    return text.size() >= begin.size() + end.size() && text.starts_with(begin) &&
           text.ends_with(end);
  };
  return std::ranges::find(kNames, text) != kNames.end() || is_between("<|", "|>") ||
         is_between("<\xef\xbd\x9c", "\xef\xbd\x9c>") || is_between("<unused", ">");
}

std::string with_spaces(std::string text) {
  for (size_t at = 0; (at = text.find(kSpaceMark, at)) != std::string::npos; ++at)
    text.replace(at, kSpaceMark.size(), " ");
  return text;
}

void add_token(uint64_t id, const Json& token, const TokenizerJsons& jsons, TokenTable& table) {
  const std::string where = "read " + jsons.file;
  const std::string content = to_text(member(token, "content", where), where);
  table.add(id, content, value_in(token, "special") == true);
}

// The first token that takes the space at its side with it, or counts as a whole word only.
std::string first_odd_token(const Json& tokens) {
  for (const Json& token : tokens)
    for (const char* flag : {"lstrip", "rstrip", "single_word"})
      if (value_in(token, flag) == true)
        return fmt::format("{} has {}", write_json(value_in(token, "content")), flag);
  return "";
}

}  // namespace

Json value_in(const Json& object, std::string_view key) {
  return object.is_object() ? object.value(std::string(key), Json()) : Json();
}

std::string type_of(const Json& object) {
  const Json type = value_in(object, "type");
  return type.is_string() ? type.get<std::string>() : write_json(object).substr(0, 120);
}

TokenTable::TokenTable(std::string file, int vocab_size)
    : file_(std::move(file)),
      scores_(size_t(vocab_size), kUnusedScore),
      types_(size_t(vocab_size), int32_t(TokenKind::kUnused)) {
  for (int id = 0; id < vocab_size; ++id) texts_.push_back(fmt::format("[PAD{}]", id));
}

void TokenTable::set(uint64_t id, std::string text, TokenKind type, float score) {
  if (id >= texts_.size())
    refuse_tokenizer(file_, "the id of the token '{}' is {}, beyond model.vocab_size ({})", text,
                     id, texts_.size());
  ids_[text] = id;
  texts_[id] = std::move(text);
  types_[id] = int32_t(type);
  scores_[id] = score;
}

void TokenTable::add(uint64_t id, const std::string& content, bool is_special) {
  const bool is_control = is_special || looks_special(content);
  if (id < types_.size() && type(id) == TokenKind::kUnknown) return;
  set(id, is_control ? content : with_spaces(content),
      is_control ? TokenKind::kControl : TokenKind::kUserDefined, kAddedScore);
  ids_[content] = id;
}

std::optional<uint64_t> TokenTable::id_of(const std::string& text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<GgufKey> TokenTable::keys(const std::string& model, const std::string& pre) const {
  std::vector<GgufKey> keys = {{"tokenizer.ggml.model", model},
                               {"tokenizer.ggml.pre", pre},
                               {"tokenizer.ggml.tokens", texts_},
                               {"tokenizer.ggml.token_type", types_}};
  if (model == "llama") keys.emplace_back("tokenizer.ggml.scores", scores_);
  return keys;
}

void add_tokens(const TokenizerJsons& jsons, TokenTable& table) {
  const std::string where = "read " + jsons.file;
  const Json listed = value_in(jsons.tokenizer, "added_tokens");
  if (!listed.is_null()) {
    for (const Json& token : to_array(listed, where))
      add_token(to_unsigned(member(token, "id", where), where), token, jsons, table);
    if (const std::string odd = first_odd_token(listed); !odd.empty())
      table.warn(fmt::format("{}: the token {}, which llama.cpp does not heed", jsons.file, odd));
    return;
  }
  const Json decoder = value_in(jsons.config, "added_tokens_decoder");
  if (!decoder.is_object()) return;
  for (const auto& [key, token] : decoder.items()) {
    uint64_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size())
      fail(ErrorKind::kCorrupt, "{}: '{}' is no id of a token", where, key);
    add_token(id, token, jsons, table);
  }
}

}  // namespace gxp
