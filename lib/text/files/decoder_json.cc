// "decoder" of tokenizer.json.
#include <algorithm>

#include "lib/text/bpe/byte_table.h"
#include "lib/text/files/tokenizer_json.h"

namespace gxp {
namespace {

std::string replace_all(std::string text, std::string_view wanted, std::string_view content) {
  for (size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, at + content.size()))
    text.replace(at, wanted.size(), content);
  return text;
}

std::string text_or(const Json& step, const char* key, const char* otherwise,
                    const std::string& where) {
  const Json& value = member_or_null(step, key);
  return value.is_null() ? otherwise : to_text(value, where);
}

// Changes the pieces, step by step, until one joins them; then only the text's beginning may change.
class DecoderReader {
 public:
  DecoderReader(DecoderRules& rules, const std::vector<bool>& is_added, const std::string& where)
      : rules_(rules), is_added_(is_added), where_(where) {}

  void take(const Json& step) {
    const std::string type = type_in(step, where_);
    if (type == "Strip" && is_fused_)
      take_leading(step);
    else if (type == "Fuse")
      is_fused_ = true;
    else if (is_fused_ || is_last_)
      refuse_text(where_, fmt::format("its decoder has {} behind what joins tokens", type));
    else if (type == "ByteLevel")
      take_byte_level();
    else if (type == "ByteFallback")
      take_byte_fallback();
    else if (type == "Replace")
      take_replace(step);
    else
      take_joint(type, step);
  }

 private:
  void take_byte_level() {
    for (size_t id = 0; id < rules_.pieces.size(); ++id)
      if (!is_added_[id])
        if (auto bytes = bytes_of_characters(rules_.pieces[id])) rules_.pieces[id] = *bytes;
    is_last_ = true;
  }

  void take_byte_fallback() {
    for (std::string& piece : rules_.pieces)
      if (const auto byte = byte_of_token(piece)) piece = std::string(1, char(*byte));
    has_bytes_ = true;
  }

  void take_replace(const Json& step) {
    const PatternJson pattern = read_pattern(step, where_);
    if (pattern.is_regex || has_bytes_)
      refuse_text(where_, "its decoder has Replace with a Regex, or behind ByteFallback");
    const std::string content = to_text(member(step, "content", where_), where_);
    for (std::string& piece : rules_.pieces)
      piece = replace_all(std::move(piece), pattern.text, content);
  }

  void take_leading(const Json& step) {
    const uint64_t start = to_unsigned(member(step, "start", where_), where_);
    rules_.leading = to_text(member(step, "content", where_), where_);
    if (member(step, "stop", where_) != 0 || rules_.leading_count != 0 || start > INT16_MAX ||
        rules_.leading.empty())
      refuse_text(where_, "its decoder has Strip at the text's end, or twice");
    rules_.leading_count = int(start);
  }

  void take_joint(const std::string& type, const Json& step) {
    is_last_ = true;
    if (type == "Metaspace") {
      const bool adds_space = flag(step, "add_prefix_space", true, where_);
      rules_.mark = to_text(member(step, "replacement", where_), where_);
      if (!adds_space || text_or(step, "prepend_scheme", "always", where_) == "never") {
        for (std::string& piece : rules_.pieces)
          piece = replace_all(std::move(piece), rules_.mark, " ");
        return;
      }
      rules_.joint = TokenJoint::kMetaspace;
    } else if (type == "WordPiece") {
      rules_.joint = TokenJoint::kWordPiece;
      rules_.mark = text_or(step, "prefix", "##", where_);
      rules_.cleans_up = flag(step, "cleanup", true, where_);
    } else if (type == "BPEDecoder") {
      rules_.joint = TokenJoint::kSuffix;
      rules_.mark = text_or(step, "suffix", "</w>", where_);
      for (const std::string& piece : rules_.pieces)
        if (piece.find(rules_.mark) + rules_.mark.size() < piece.size())
          refuse_text(where_, fmt::format("its decoder is BPEDecoder, whose suffix is in the midst "
                                          "of '{}'",
                                          piece));
    } else {
      refuse_text(where_, fmt::format("its decoder is {}", type));
    }
    if (rules_.mark.empty()) fail(ErrorKind::kCorrupt, "{}: its decoder lacks a mark", where_);
  }

  DecoderRules& rules_;
  const std::vector<bool>& is_added_;
  const std::string& where_;
  bool has_bytes_ = false, is_fused_ = false;
  bool is_last_ = false;  // only Fuse may follow
};

}  // namespace

DecoderRules read_decoder(const Json& block, const VocabularyJson& vocabulary,
                          const std::vector<AddedToken>& added, const std::string& where) {
  DecoderRules rules;
  rules.pieces = vocabulary.texts;
  rules.exists = vocabulary.exists;
  rules.is_special.resize(rules.exists.size());
  std::vector<bool> is_added(rules.exists.size());
  for (const AddedToken& token : added) {
    const auto id = size_t(token.id);
    if (id >= rules.exists.size()) {
      rules.pieces.resize(id + 1);
      for (auto* bits : {&rules.exists, &rules.is_special, &is_added}) bits->resize(id + 1);
    }
    if (!rules.exists[id]) is_added[id] = true;
    rules.pieces[id] = token.content;
    rules.exists[id] = true;
    rules.is_special[id] = token.is_special;
  }
  const std::vector<const Json*> steps = steps_of(block, "decoders", where);
  if (steps.empty() && block.is_null()) rules.joint = TokenJoint::kSpace;
  DecoderReader reader(rules, is_added, where);
  for (const Json* step : steps) reader.take(*step);
  return rules;
}

}  // namespace gxp
