// The block "model" of tokenizer.json.
#include <algorithm>

#include "lib/text/bpe/byte_table.h"
#include "lib/text/files/tokenizer_json.h"

namespace gxp {
namespace {

constexpr uint64_t kMaxId = (uint64_t{1} << 21) - 1;  // 8 times the largest vocabulary in use

void check_type(const Json& model, const std::string& where) {
  const Json& type = member_or_null(model, "type");
  // The oldest files have none, and are told by their keys.
  const std::string name = !type.is_null()            ? to_text(type, where)
                           : model.contains("merges") ? "BPE"
                                                      : "of no known type";
  if (name != "BPE") refuse_text(where, fmt::format("its model is {}", name));
  const Json& dropout = member_or_null(model, "dropout");
  if (!dropout.is_null() && dropout != 0.0)
    refuse_text(where, fmt::format("its model.dropout is {}: ids are random", write_json(dropout)));
}

std::string text_or_empty(const Json& model, const char* key, const std::string& where) {
  const Json& value = member_or_null(model, key);
  return value.is_null() ? "" : to_text(value, where);
}

VocabularyIds read_vocabulary(const Json& model, VocabularyJson& read, const std::string& where) {
  VocabularyIds ids;
  for (const auto& [text, value] : to_object(member(model, "vocab", where), where).items()) {
    const uint64_t id = to_unsigned(value, where);
    if (id > kMaxId)
      fail(ErrorKind::kCorrupt, "{}: the token '{}' has the id {}; {} is the largest", where, text,
           id, kMaxId);
    if (id >= read.texts.size()) {
      read.texts.resize(id + 1);
      read.exists.resize(id + 1);
    }
    if (read.exists[id])
      fail(ErrorKind::kCorrupt, "{}: the tokens '{}' and '{}' have one id, {}", where,
           read.texts[id], text, id);
    read.texts[id] = text;
    read.exists[id] = true;
    ids.emplace(text, int32_t(id));
  }
  return ids;
}

struct MergeTexts {
  std::string left, right;
};

// "a b", or ["a", "b"]; one file has merges of one kind. Nothing: the line "#version".
std::optional<MergeTexts> read_merge(const Json& merge, bool is_pair, const std::string& where) {
  if (is_pair) {
    if (!merge.is_array() || merge.size() != 2)
      fail(ErrorKind::kCorrupt, "{}: a merge is no pair of tokens", where);
    return MergeTexts{to_text(merge[0], where), to_text(merge[1], where)};
  }
  const std::string text = to_text(merge, where);
  if (text.starts_with("#version")) return std::nullopt;
  const size_t space = text.find(' ');
  if (space == text.npos || text.find(' ', space + 1) != text.npos)
    fail(ErrorKind::kCorrupt, "{}: the merge '{}' is not two tokens with one space", where, text);
  return MergeTexts{text.substr(0, space), text.substr(space + 1)};
}

std::vector<BpeMerge> read_merges(const Json& list, const VocabularyIds& ids,
                                  const std::string& prefix, const std::string& where) {
  const auto id_of = [&](const std::string& text) {
    const auto found = ids.find(text);
    if (found == ids.end())
      fail(ErrorKind::kCorrupt, "{}: a merge has or makes '{}', which is no token", where, text);
    return found->second;
  };
  std::vector<BpeMerge> merges;
  const bool are_pairs = !to_array(list, where).empty() && list[0].is_array();
  for (const Json& item : list) {
    const auto texts = read_merge(item, are_pairs, where);
    if (!texts) continue;
    if (texts->right.size() < prefix.size())
      fail(ErrorKind::kCorrupt, "{}: the merge of '{}' and '{}': the second lacks the prefix '{}'",
           where, texts->left, texts->right, prefix);
    const std::string made = texts->left + texts->right.substr(prefix.size());
    merges.push_back({id_of(texts->left), id_of(texts->right),
                      MergeResult{uint32_t(merges.size()), id_of(made)}});
  }
  return merges;
}

// Keys the tokens by the bytes that their characters stand for.
void take_bytes(const VocabularyIds& ids, BpeModel& model, const std::string& where) {
  for (const auto& [text, id] : ids)
    if (const auto bytes = bytes_of_characters(text)) model.tokens.emplace(*bytes, id);
  for (std::string* affix : {&model.prefix, &model.suffix}) {
    const auto bytes = bytes_of_characters(*affix);
    if (!bytes) refuse_text(where, fmt::format("it adds '{}' to byte-level symbols", *affix));
    *affix = *bytes;
  }
}

bool has_all_bytes(const BpeModel& model) {
  if (!model.is_byte_level || !model.prefix.empty() || !model.suffix.empty()) return false;
  for (int byte = 0; byte < 256; ++byte)
    if (!model.tokens.contains(std::string(1, char(byte)))) return false;
  return true;
}

}  // namespace

VocabularyJson read_model(const Json& json, bool is_byte_level, const std::string& where) {
  check_type(json, where);
  VocabularyJson read;
  BpeModel& model = read.model;
  const VocabularyIds ids = read_vocabulary(json, read, where);
  model.is_byte_level = is_byte_level;
  model.prefix = text_or_empty(json, "continuing_subword_prefix", where);
  model.suffix = text_or_empty(json, "end_of_word_suffix", where);
  model.takes_whole_words = flag(json, "ignore_merges", false, where);
  model.falls_back_to_bytes = flag(json, "byte_fallback", false, where);
  model.fuses_unknown = flag(json, "fuse_unk", false, where);
  model.merges = read_merges(member(json, "merges", where), ids, model.prefix, where);
  if (is_byte_level)
    take_bytes(ids, model, where);
  else
    model.tokens = ids;
  if (is_byte_level && model.falls_back_to_bytes) {
    if (!has_all_bytes(model))
      refuse_text(where, "it is byte-level, lacks bytes, and has model.byte_fallback");
    model.falls_back_to_bytes = false;
  }
  const std::string unknown = text_or_empty(json, "unk_token", where);
  const auto found = ids.find(unknown);
  if (found != ids.end())
    model.unknown = found->second;
  else if (!member_or_null(json, "unk_token").is_null() && !has_all_bytes(model))
    fail(ErrorKind::kCorrupt, "{}: model.unk_token is '{}', which is no token", where, unknown);
  return read;
}

}  // namespace gxp
