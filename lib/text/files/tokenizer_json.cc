#include "lib/text/files/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <map>

#include "lib/base/log.h"
#include "lib/base/text/joined.h"

namespace gxp {
namespace {

void check_top_level(const Json& file, const std::string& where) {
  constexpr std::array<std::string_view, 9> kKeys = {
      "version",       "truncation",     "padding", "added_tokens", "normalizer",
      "pre_tokenizer", "post_processor", "decoder", "model"};
  for (const auto& [key, value] : to_object(file, where).items())
    if (std::ranges::find(kKeys, key) == kKeys.end())
      fail(ErrorKind::kCorrupt, "{}: the key '{}' is unknown; a tokenizer has {}", where, key,
           joined(kKeys, ", "));
  const Json& version = member_or_null(file, "version");
  if (!version.is_null() && version != "1.0")
    fail(ErrorKind::kCorrupt, "{}: its version is {}, not \"1.0\"", where, write_json(version));
  for (const char* key : {"truncation", "padding"})
    if (!member_or_null(file, key).is_null())
      log_info("{}: '{}' is ignored: texts are tokenized whole", where, key);
}

// Special tokens that the post-processor names by an id that the tokenizer does not have.
void check_frame(const TextFrameIds& frame, const DecoderRules& rules, const std::string& where) {
  for (const auto* side : {&frame.prefix, &frame.suffix})
    for (const int32_t id : *side)
      if (size_t(id) >= rules.exists.size() || !rules.exists[size_t(id)])
        fail(ErrorKind::kCorrupt, "{}: its post_processor has the id {}, which no token has", where,
             id);
}

// Added tokens as they are searched for and decoded: those of normalised text are that text. The
// library finds one without text between all characters, and of two with one text either.
std::vector<AddedToken> normalized_tokens(const TokenizerParts& parts, const std::string& where) {
  std::vector<AddedToken> tokens = parts.added;
  NormalizerMemory memory;
  std::map<std::string, size_t> seen;
  for (size_t i = 0; i < tokens.size(); ++i) {
    AddedToken& token = tokens[i];
    if (!token.is_normalized) continue;
    token.content = parts.normalizer.apply({token.content, {}, 0}, false, memory).text;
    if (token.content.empty())
      refuse_text(where, fmt::format("its added token '{}' is nothing when it is normalised",
                                     parts.added[i].content));
    const auto [first, is_new] = seen.try_emplace(token.content, i);
    if (!is_new && tokens[first->second].id != token.id)
      refuse_text(where, fmt::format("its added tokens '{}' and '{}' are one when normalised",
                                     parts.added[first->second].content, parts.added[i].content));
  }
  return tokens;
}

}  // namespace

TokenizerParts parts_of_json(const Json& file, const std::string& where) {
  check_top_level(file, where);
  PreTokenizerJson pre_tokenizer = read_pre_tokenizer(member_or_null(file, "pre_tokenizer"), where);
  VocabularyJson vocabulary =
      read_model(member(file, "model", where), pre_tokenizer.is_byte_level, where);
  TokenizerParts parts;
  for (size_t id = 0; id < vocabulary.texts.size(); ++id)
    if (vocabulary.exists[id]) parts.ids.emplace(vocabulary.texts[id], int32_t(id));
  parts.added = read_added_tokens(member_or_null(file, "added_tokens"), parts.ids, where);
  parts.normalizer = Normalizer(read_normalizer(member_or_null(file, "normalizer"), where));
  parts.decoder = read_decoder(member_or_null(file, "decoder"), vocabulary,
                               normalized_tokens(parts, where), where);
  for (const AddedToken& token : parts.added) parts.ids.emplace(token.content, token.id);
  TextFrameIds frame = read_post_processor(member_or_null(file, "post_processor"), where);
  check_frame(frame, parts.decoder, where);
  parts.prefix = std::move(frame.prefix);
  parts.suffix = std::move(frame.suffix);
  // Where no step before has changed the text, it is known without asking.
  parts.asks_for_source = pre_tokenizer.asks_for_source &&
                          (!parts.normalizer.empty() || pre_tokenizer.steps.size() > 1);
  parts.pre_tokenizer = std::move(pre_tokenizer.steps);
  parts.word_rules = pre_tokenizer.word_rules;
  parts.model = std::move(vocabulary.model);
  return parts;
}

}  // namespace gxp
