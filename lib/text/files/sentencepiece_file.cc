#include "lib/text/files/sentencepiece_file.h"

#include <cstring>

#include "lib/base/error.h"

namespace gxp {
namespace {

// Fields of messages in sentencepiece_model.proto.
enum ModelField : uint64_t { kPieces = 1, kTrainer = 2, kNormalizer = 3 };
enum PieceField : uint64_t { kPiece = 1, kScore = 2, kType = 3 };
enum TrainerField : uint64_t {
  kModelType = 3,
  kSpaceIsSuffix = 24,
  kByteFallback = 35,
  kUnknownId = 40,
  kBosId = 41,
  kEosId = 42,
  kPadId = 43
};
enum NormalizerField : uint64_t {
  kCharacterMap = 2,
  kAddDummyPrefix = 3,
  kRemoveExtraSpaces = 4,
  kEscapeSpaces = 5
};

// A field of a message: a number, or bytes.
struct ProtoField {
  uint64_t field = 0;
  uint64_t number = 0;
  std::string_view bytes = {};
};

class ProtoReader {
 public:
  ProtoReader(std::string_view bytes, const std::string& file) : left_(bytes), file_(file) {}

  // False at the end.
  bool next(ProtoField& out) {
    if (left_.empty()) return false;
    const uint64_t tag = varint();
    out = {.field = tag >> 3};
    switch (tag & 7) {
      case 0:
        out.number = varint();
        return true;
      case 1:
        out.bytes = take(8);
        return true;
      case 2:
        out.bytes = take(varint());
        return true;
      case 5:
        out.bytes = take(4);
        return true;
      default:
        refuse();
    }
  }

 private:
  [[noreturn]] void refuse() const {
    fail(ErrorKind::kCorrupt, "read {}: it is no model of SentencePiece, or is cut off", file_);
  }
  std::string_view take(uint64_t count) {
    if (count > left_.size()) refuse();
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = uint8_t(take(1)[0]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    refuse();
  }

  std::string_view left_;
  const std::string& file_;
};

SentencePiece parse_piece(std::string_view bytes, const std::string& file) {
  SentencePiece piece;
  ProtoReader reader(bytes, file);
  for (ProtoField field; reader.next(field);) {
    if (field.field == kPiece) piece.text = field.bytes;
    if (field.field == kType && field.number >= 1 && field.number <= 6)
      piece.type = TokenKind(field.number);
    if (field.field == kScore && field.bytes.size() == sizeof(float))
      std::memcpy(&piece.score, field.bytes.data(), sizeof(float));
  }
  return piece;
}

void parse_trainer(std::string_view bytes, const std::string& file, SentencePieceModel& model) {
  ProtoReader reader(bytes, file);
  for (ProtoField field; reader.next(field);) {
    const auto id = int64_t(field.number);
    if (field.field == kModelType) model.model_type = field.number;
    if (field.field == kSpaceIsSuffix) model.space_is_suffix = field.number != 0;
    if (field.field == kByteFallback) model.falls_back_to_bytes = field.number != 0;
    if (field.field == kUnknownId) model.unknown = id;
    if (field.field == kBosId) model.bos = id;
    if (field.field == kEosId) model.eos = id;
    if (field.field == kPadId) model.pad = id;
  }
}

void parse_normalizer(std::string_view bytes, const std::string& file, SentencePieceModel& model) {
  ProtoReader reader(bytes, file);
  for (ProtoField field; reader.next(field);) {
    if (field.field == kCharacterMap) model.has_character_map = !field.bytes.empty();
    if (field.field == kAddDummyPrefix) model.adds_prefix = field.number != 0;
    if (field.field == kRemoveExtraSpaces) model.removes_spaces = field.number != 0;
    if (field.field == kEscapeSpaces) model.escapes_spaces = field.number != 0;
  }
}

}  // namespace

SentencePieceModel parse_sentencepiece(std::string_view content, const std::string& file) {
  SentencePieceModel model;
  ProtoReader reader(content, file);
  for (ProtoField field; reader.next(field);) {
    if (field.field == kPieces) model.pieces.push_back(parse_piece(field.bytes, file));
    if (field.field == kTrainer) parse_trainer(field.bytes, file, model);
    if (field.field == kNormalizer) parse_normalizer(field.bytes, file, model);
  }
  if (model.pieces.empty()) fail(ErrorKind::kCorrupt, "read {}: it has no pieces", file);
  return model;
}

}  // namespace gxp
