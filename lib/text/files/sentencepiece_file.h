// tokenizer.model, a protocol buffer of SentencePiece (sentencepiece_model.proto).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/tokenizer.h"

namespace gxp {

// As SentencePiece numbers them, and GGUF.
enum class TokenKind : int32_t {
  kNormal = 1,
  kUnknown,
  kControl,
  kUserDefined,
  kUnused,
  kByte,
};

inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581, SentencePiece's space

struct SentencePiece {
  std::string text;
  float score = 0;
  TokenKind type = TokenKind::kNormal;
};

struct SentencePieceModel {
  static constexpr uint64_t kUnigram = 1, kBpe = 2;  // of model_type
  std::vector<SentencePiece> pieces;                 // by id
  uint64_t model_type = kUnigram;
  int64_t unknown = 0, bos = 1, eos = 2, pad = -1;
  bool has_character_map = false, adds_prefix = true, removes_spaces = true, escapes_spaces = true;
  bool space_is_suffix = false, falls_back_to_bytes = false;
};

// kCorrupt: it is none, or has no pieces. `file` is for messages.
SentencePieceModel parse_sentencepiece(std::string_view content, const std::string& file);

// Ids as SentencePiece's encode() gives them, without those of the text's beginning and end. The text
// of a control token is ordinary text. kConfig: models other than BPE, and those that change text
// beyond marking spaces.
std::shared_ptr<const Tokenizer> read_sentencepiece(std::string_view content,
                                                    const std::string& file);

}  // namespace gxp
