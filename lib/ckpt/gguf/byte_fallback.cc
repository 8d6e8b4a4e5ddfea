// BPE over characters with a fallback to bytes, of a tokenizer.json: tokenizer.ggml.model "llama".
#include <algorithm>
#include <array>
#include <unordered_map>

#include "lib/base/text/utf8.h"
#include "lib/ckpt/gguf/token_table.h"
#include "lib/text/bpe/byte_table.h"

namespace gxp {
namespace {

using TokenIds = std::unordered_map<std::string, uint64_t>;

// What becomes of the text before it is split: spaces are marked, and one may be put before it.
struct Spaces {
  bool are_marked = false, is_prefixed = false, split_words = false;
};

void take_normalizer(const Json& step, const std::string& file, Spaces& spaces) {
  const std::string type = type_of(step);
  if (step.is_null()) return;
  if (type == "Sequence") {
    for (const Json& inner : value_in(step, "normalizers")) take_normalizer(inner, file, spaces);
  } else if (type == "Prepend" && value_in(step, "prepend") == kSpaceMark) {
    spaces.is_prefixed = true;
  } else if (type == "Replace" && value_in(value_in(step, "pattern"), "String") == " " &&
             value_in(step, "content") == kSpaceMark) {
    spaces.are_marked = true;
  } else {
    refuse_tokenizer(file, "its normalizer has the step {}, which llama.cpp does not have",
                     write_json(step));
  }
}

void take_pre_tokenizer(const Json& step, const std::string& file, Spaces& spaces) {
  if (step.is_null()) return;
  const std::string type = type_of(step);
  // Of Gemma: no space is left to split at.
  if (type == "Split" && value_in(value_in(step, "pattern"), "String") == " " && spaces.are_marked)
    return;
  if (type != "Metaspace" || value_in(step, "replacement") != kSpaceMark)
    refuse_tokenizer(file, "its pre_tokenizer is {}, which llama.cpp does not have",
                     write_json(step));
  const Json scheme = value_in(step, "prepend_scheme");
  const bool is_off =
      scheme == "never" || (scheme.is_null() && value_in(step, "add_prefix_space") == false);
  spaces = {
      .are_marked = true, .is_prefixed = !is_off, .split_words = value_in(step, "split") != false};
}

Spaces spaces_of(const TokenizerJsons& jsons) {
  Spaces spaces;
  take_normalizer(value_in(jsons.tokenizer, "normalizer"), jsons.file, spaces);
  take_pre_tokenizer(value_in(jsons.tokenizer, "pre_tokenizer"), jsons.file, spaces);
  if (!spaces.are_marked)
    refuse_tokenizer(jsons.file, "it does not mark spaces by U+2581, as llama.cpp does");
  return spaces;
}

void set_vocabulary(const TokenizerJsons& jsons, const TokenIds& ids, TokenTable& table) {
  Json unknown = value_in(value_in(jsons.tokenizer, "model"), "unk_token");
  if (unknown.is_null()) unknown = value_in(jsons.config, "unk_token");
  for (const auto& [token, id] : ids)
    table.set(id, token, unknown == token ? TokenKind::kUnknown : TokenKind::kNormal);
  for (int byte = 0; byte < 256; ++byte) {
    const std::string name = byte_token(uint8_t(byte));
    const auto found = ids.find(name);
    if (found == ids.end())
      refuse_tokenizer(jsons.file, "it lacks the token {}, which llama.cpp needs", name);
    table.set(found->second, name, TokenKind::kByte);
  }
}

// Whether a word splitter would change anything: a token has a mark behind its first character.
void check_split_words(const TokenizerJsons& jsons, const TokenIds& ids) {
  for (const auto& [token, id] : ids)
    if (token.find(kSpaceMark, 1) != std::string::npos)
      refuse_tokenizer(
          jsons.file,
          "its pre_tokenizer splits words, and the token '{}' spans two of them, which "
          "llama.cpp does not keep apart",
          token);
}

struct Merges {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::unordered_map<std::string, uint64_t> first_rank;  // by the token that is made
  std::unordered_map<std::string, uint64_t> counts;      // pairs that make it
};

Merges take_merges(const TokenizerJsons& jsons) {
  const std::string where = "read " + jsons.file;
  const Json model = value_in(jsons.tokenizer, "model");
  Merges merges;
  std::string last;
  for (const Json& merge : to_array(member(model, "merges", where), where)) {
    std::string left, right;
    if (merge.is_array() && merge.size() == 2) {
      left = to_text(merge[0], where);
      right = to_text(merge[1], where);
    } else {
      const std::string text = to_text(merge, where);
      const size_t space = text.find(' ');
      if (space == std::string::npos)
        fail(ErrorKind::kCorrupt, "{}: the merge '{}' is no pair of tokens", where, text);
      left = text.substr(0, space);
      right = text.substr(space + 1);
    }
    std::string made = left + right;
    const bool is_new = merges.first_rank.try_emplace(made, merges.pairs.size()).second;
    if (!is_new && made != last)
      refuse_tokenizer(jsons.file,
                       "the merges that make '{}' are not one behind another, and llama.cpp knows "
                       "one place for each token",
                       made);
    ++merges.counts[made];
    merges.pairs.emplace_back(std::move(left), std::move(right));
    last = std::move(made);
  }
  return merges;
}

// llama.cpp merges any two tokens that make a third; here the merges must list as many.
void check_merges(const TokenizerJsons& jsons, const TokenIds& ids, const TokenTable& table,
                  const Merges& merges) {
  for (const auto& [token, id] : ids) {
    if (table.type(id) != TokenKind::kNormal) continue;
    uint64_t possible = 0;
    for (size_t at = 1; at < token.size(); ++at)
      if (!continues_utf8(token[at]) && ids.contains(token.substr(0, at)) &&
          ids.contains(token.substr(at)))
        ++possible;
    const auto listed = merges.counts.find(token);
    if (possible != (listed == merges.counts.end() ? 0 : listed->second))
      refuse_tokenizer(jsons.file,
                       "two tokens that make '{}' are not among its merges, and llama.cpp would "
                       "merge them",
                       token);
  }
}

}  // namespace

std::vector<GgufKey> byte_fallback_keys(const TokenizerJsons& jsons, TokenTable& table) {
  const std::string where = "read " + jsons.file;
  const Json model = value_in(jsons.tokenizer, "model");
  if (value_in(model, "ignore_merges") == true)
    refuse_tokenizer(jsons.file, "its model.ignore_merges is true, which llama.cpp does not have");
  const Spaces spaces = spaces_of(jsons);
  TokenIds ids;
  for (const auto& [token, id] : to_object(member(model, "vocab", where), where).items())
    ids.emplace(token, to_unsigned(id, where));
  set_vocabulary(jsons, ids, table);
  const Merges merges = take_merges(jsons);
  for (const auto& [token, rank] : merges.first_rank) {
    const auto made = ids.find(token);
    if (made == ids.end())
      fail(ErrorKind::kCorrupt, "{}: a merge makes '{}', which is no token", where, token);
    table.set(made->second, token, TokenKind::kNormal, -float(rank));
  }
  add_tokens(jsons, table);
  check_merges(jsons, ids, table, merges);
  if (spaces.split_words) check_split_words(jsons, ids);
  std::vector<GgufKey> keys = table.keys("llama", "default");
  keys.emplace_back("tokenizer.ggml.add_space_prefix", spaces.is_prefixed);
  return keys;
}

}  // namespace gxp
