// "added_tokens" and "post_processor" of tokenizer.json.
#include <algorithm>

#include "lib/text/files/tokenizer_json.h"

namespace gxp {
namespace {

// The library does not obey the id in the file: a token of the vocabulary keeps its own, and the
// others count on from the vocabulary's size.
int32_t id_in_library(const std::string& content, const VocabularyIds& vocabulary,
                      const std::vector<AddedToken>& before) {
  if (const auto found = vocabulary.find(content); found != vocabulary.end()) return found->second;
  auto next = int32_t(vocabulary.size());
  for (const AddedToken& token : before) {
    if (token.content == content) return token.id;
    next = std::max(next, token.id + 1);
  }
  return next;
}

std::vector<int32_t> ids_of_special(const Json& processor, const Json& item,
                                    const std::string& where) {
  const std::string name = to_text(member(item, "id", where), where);
  const Json& tokens = member(processor, "special_tokens", where);
  std::vector<int32_t> ids;
  for (const uint64_t id :
       to_numbers(member(member(tokens, name.c_str(), where), "ids", where), where)) {
    if (id > INT32_MAX) fail(ErrorKind::kCorrupt, "{}: a token has the id {}", where, id);
    ids.push_back(int32_t(id));
  }
  return ids;
}

// The template of one text: special tokens, "$A", special tokens.
TextFrameIds read_template(const Json& processor, const std::string& where) {
  TextFrameIds frame;
  int texts = 0;
  for (const Json& item : to_array(member(processor, "single", where), where)) {
    const Json& special = member_or_null(item, "SpecialToken");
    if (special.is_null()) {
      const Json& text = member(item, "Sequence", where);
      if (member(text, "id", where) != "A" || ++texts > 1)
        refuse_text(where, "its post_processor has a template with more than one text");
      continue;
    }
    std::vector<int32_t>& side = texts == 0 ? frame.prefix : frame.suffix;
    const std::vector<int32_t> ids = ids_of_special(processor, special, where);
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (texts == 0) refuse_text(where, "its post_processor has a template without a text");
  return frame;
}

// ["</s>", 2]
std::vector<int32_t> read_pair(const Json& processor, const char* key, const std::string& where) {
  const Json& pair = to_array(member(processor, key, where), where);
  const uint64_t id = pair.size() == 2 ? to_unsigned(pair[1], where) : UINT64_MAX;
  if (id > INT32_MAX) fail(ErrorKind::kCorrupt, "{}: '{}' is no token and its id", where, key);
  return {int32_t(id)};
}

}  // namespace

std::vector<AddedToken> read_added_tokens(const Json& list, const VocabularyIds& vocabulary,
                                          const std::string& where) {
  std::vector<AddedToken> tokens;
  if (list.is_null()) return tokens;
  for (const Json& item : to_array(list, where)) {
    AddedToken token = {.content = to_text(member(item, "content", where), where),
                        .is_single_word = flag(item, "single_word", false, where),
                        .strips_left = flag(item, "lstrip", false, where),
                        .strips_right = flag(item, "rstrip", false, where),
                        .is_normalized = flag(item, "normalized", false, where),
                        .is_special = flag(item, "special", false, where)};
    if (token.content.empty()) refuse_text(where, "it has an added token without text");
    token.id = id_in_library(token.content, vocabulary, tokens);
    const uint64_t id = to_unsigned(member(item, "id", where), where);
    if (id != uint64_t(token.id))
      refuse_text(where, fmt::format("its added token '{}' has the id {}, where the tokenizers "
                                     "library gives it {}",
                                     token.content, id, token.id));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

TextFrameIds read_post_processor(const Json& block, const std::string& where) {
  TextFrameIds frame;
  for (const Json* step : steps_of(block, "processors", where)) {
    const std::string type = type_in(*step, where);
    TextFrameIds next;
    if (type == "TemplateProcessing")
      next = read_template(*step, where);
    else if (type == "RobertaProcessing" || type == "BertProcessing")
      next = {read_pair(*step, "cls", where), read_pair(*step, "sep", where)};
    else if (type != "ByteLevel")
      refuse_text(where, fmt::format("its post_processor is {}", type));
    // Each step goes around what those before have made.
    frame.prefix.insert(frame.prefix.begin(), next.prefix.begin(), next.prefix.end());
    frame.suffix.insert(frame.suffix.end(), next.suffix.begin(), next.suffix.end());
  }
  return frame;
}

}  // namespace gxp
