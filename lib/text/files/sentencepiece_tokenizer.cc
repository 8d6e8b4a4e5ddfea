#include <algorithm>
#include <cmath>
#include <span>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/text/utf8.h"
#include "lib/text/bpe/byte_table.h"
#include "lib/text/files/sentencepiece_file.h"
#include "lib/text/pipeline/bpe_tokenizer.h"
#include "lib/text/unicode/valid_utf8.h"

namespace gxp {
namespace {

void check_model(const SentencePieceModel& model, const std::string& file) {
  const auto refuse_if = [&](bool wrong, std::string_view what) {
    if (wrong)
      fail(ErrorKind::kConfig,
           "read {}: it {}, which gxp does not compute; a tokenizer.json of the same model may do",
           file, what);
  };
  refuse_if(model.model_type == SentencePieceModel::kUnigram, "is a unigram model");
  refuse_if(model.model_type != SentencePieceModel::kBpe, "is no BPE model");
  refuse_if(model.has_character_map, "normalizes characters by a map");
  refuse_if(model.removes_spaces, "removes extra spaces");
  refuse_if(!model.escapes_spaces, "does not mark spaces");
  refuse_if(model.space_is_suffix, "puts spaces behind words");
  for (const SentencePiece& piece : model.pieces) {
    refuse_if(piece.type == TokenKind::kUnused, "has unused pieces, as '" + piece.text + "'");
    if (piece.text.empty() || !is_valid_utf8(piece.text) || !std::isfinite(piece.score))
      fail(ErrorKind::kCorrupt, "read {}: it has a piece without a text or a score", file);
  }
}

// The ranks of ordinary pieces: the highest score is 0, equal scores are equal.
std::vector<uint32_t> ranks_of(const SentencePieceModel& model) {
  std::vector<float> scores;
  for (const SentencePiece& piece : model.pieces) scores.push_back(piece.score);
  std::ranges::sort(scores, std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  std::vector<uint32_t> ranks;
  for (const SentencePiece& piece : model.pieces)
    ranks.push_back(
        uint32_t(std::ranges::lower_bound(scores, piece.score, std::greater<>()) - scores.begin()));
  return ranks;
}

// All splits of each piece into two.
std::vector<BpeMerge> merges_of_pieces(const SentencePieceModel& model,
                                       const VocabularyIds& ordinary) {
  const std::vector<uint32_t> ranks = ranks_of(model);
  std::vector<BpeMerge> merges;
  for (const auto& [text, id] : ordinary)
    for (size_t at = 1; at < text.size(); ++at) {
      if (continues_utf8(text[at])) continue;
      const auto left = ordinary.find(std::string_view(text).substr(0, at));
      const auto right = ordinary.find(std::string_view(text).substr(at));
      if (left != ordinary.end() && right != ordinary.end())
        merges.push_back({left->second, right->second, MergeResult{ranks[size_t(id)], id}});
    }
  return merges;
}

// What a piece is when it is decoded.
std::string decoded(const SentencePiece& piece) {
  if (piece.type == TokenKind::kControl) return "";
  if (piece.type == TokenKind::kUnknown) return " \xe2\x81\x87 ";  // U+2047
  if (piece.type == TokenKind::kByte)
    if (const auto byte = byte_of_token(piece.text)) return std::string(1, char(*byte));
  std::string text = piece.text;
  for (size_t at = 0; (at = text.find(kSpaceMark, at)) != std::string::npos; ++at)
    text.replace(at, kSpaceMark.size(), " ");
  return text;
}

// Puts a piece where text finds it.
void place_piece(const SentencePiece& piece, int32_t id, const SentencePieceModel& model,
                 TokenizerParts& parts) {
  const auto add = [&] { return parts.model.tokens.emplace(piece.text, id).second; };
  switch (piece.type) {
    case TokenKind::kNormal:
      add();
      break;
    case TokenKind::kByte:
      if (model.falls_back_to_bytes) add();
      break;
    case TokenKind::kUserDefined:
      parts.added.push_back({.content = piece.text, .id = id});
      break;
    case TokenKind::kUnknown:
      parts.model.unknown = id;
      break;
    case TokenKind::kControl:
    case TokenKind::kUnused:
      break;
  }
}

}  // namespace

std::shared_ptr<const Tokenizer> read_sentencepiece(std::string_view content,
                                                    const std::string& file) {
  const SentencePieceModel model = parse_sentencepiece(content, file);
  check_model(model, file);
  TokenizerParts parts;
  VocabularyIds ordinary;
  for (size_t at = 0; at < model.pieces.size(); ++at) {
    const SentencePiece& piece = model.pieces[at];
    const auto id = int32_t(at);
    if (!parts.ids.emplace(piece.text, id).second)
      fail(ErrorKind::kCorrupt, "read {}: it has the piece '{}' twice", file, piece.text);
    if (piece.type == TokenKind::kNormal) ordinary.emplace(piece.text, id);
    place_piece(piece, id, model, parts);
    parts.decoder.pieces.push_back(decoded(piece));
    parts.decoder.exists.push_back(true);
    parts.decoder.is_special.push_back(piece.type == TokenKind::kControl ||
                                       piece.type == TokenKind::kUnknown);
  }
  parts.model.merges = merges_of_pieces(model, ordinary);
  parts.model.falls_back_to_bytes = model.falls_back_to_bytes;
  parts.model.fuses_unknown = true;
  std::vector<std::unique_ptr<NormalizerStep>> steps;
  if (model.adds_prefix) {
    steps.push_back(make_prepend(std::string(kSpaceMark)));
    parts.decoder.leading = " ";
    parts.decoder.leading_count = 1;
  }
  steps.push_back(make_replace_text(" ", std::string(kSpaceMark)));
  parts.normalizer = Normalizer(std::move(steps));
  parts.digest = hash_hex(std::as_bytes(std::span(content.data(), content.size())));
  return make_bpe_tokenizer(std::move(parts));
}

}  // namespace gxp
