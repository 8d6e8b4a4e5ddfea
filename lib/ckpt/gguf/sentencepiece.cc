// tokenizer.model, a protocol buffer of SentencePiece: tokenizer.ggml.model "llama".
#include <bit>
#include <cstring>

#include "lib/ckpt/file.h"
#include "lib/ckpt/gguf/token_table.h"

namespace gxp {
namespace {

constexpr uint64_t kMaxModelBytes = 64u << 20;

// Fields of messages in sentencepiece_model.proto.
enum ModelField : uint64_t { kPieces = 1, kTrainer = 2, kNormalizer = 3 };
enum PieceField : uint64_t { kPiece = 1, kScore = 2, kType = 3 };
enum TrainerField : uint64_t {
  kModelType = 3,
  kSpaceIsSuffix = 24,
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
constexpr uint64_t kBpe = 2;  // of ModelType

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

struct SentencePiece {
  std::string text;
  float score = 0;
  TokenKind type = TokenKind::kNormal;
};

struct SentencePieceModel {
  std::vector<SentencePiece> pieces;
  uint64_t model_type = 1;  // unigram
  int64_t unknown = 0, bos = 1, eos = 2, pad = -1;
  bool has_character_map = false, adds_prefix = true, removes_spaces = true, escapes_spaces = true;
  bool space_is_suffix = false;
};

SentencePiece read_piece(std::string_view bytes, const std::string& file) {
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

void read_trainer(std::string_view bytes, const std::string& file, SentencePieceModel& model) {
  ProtoReader reader(bytes, file);
  for (ProtoField field; reader.next(field);) {
    const auto id = int64_t(field.number);
    if (field.field == kModelType) model.model_type = field.number;
    if (field.field == kSpaceIsSuffix) model.space_is_suffix = field.number != 0;
    if (field.field == kUnknownId) model.unknown = id;
    if (field.field == kBosId) model.bos = id;
    if (field.field == kEosId) model.eos = id;
    if (field.field == kPadId) model.pad = id;
  }
}

void read_normalizer(std::string_view bytes, const std::string& file, SentencePieceModel& model) {
  ProtoReader reader(bytes, file);
  for (ProtoField field; reader.next(field);) {
    if (field.field == kCharacterMap) model.has_character_map = !field.bytes.empty();
    if (field.field == kAddDummyPrefix) model.adds_prefix = field.number != 0;
    if (field.field == kRemoveExtraSpaces) model.removes_spaces = field.number != 0;
    if (field.field == kEscapeSpaces) model.escapes_spaces = field.number != 0;
  }
}

SentencePieceModel read_sentencepiece(const std::string& path) {
  const std::string bytes = read_text(path, kMaxModelBytes);
  SentencePieceModel model;
  ProtoReader reader(bytes, path);
  for (ProtoField field; reader.next(field);) {
    if (field.field == kPieces) model.pieces.push_back(read_piece(field.bytes, path));
    if (field.field == kTrainer) read_trainer(field.bytes, path, model);
    if (field.field == kNormalizer) read_normalizer(field.bytes, path, model);
  }
  if (model.pieces.empty()) fail(ErrorKind::kCorrupt, "read {}: it has no pieces", path);
  return model;
}

void check_sentencepiece(const SentencePieceModel& model, const std::string& path) {
  const auto refuse_if = [&](bool wrong, std::string_view what) {
    if (wrong)
      refuse_tokenizer(path, "it {}, which llama.cpp does not do as SentencePiece does", what);
  };
  refuse_if(model.model_type != kBpe, "is no BPE model");
  refuse_if(model.has_character_map, "normalizes characters");
  refuse_if(model.removes_spaces, "removes extra spaces");
  refuse_if(!model.escapes_spaces, "does not mark spaces");
  refuse_if(model.space_is_suffix, "puts spaces behind words");
}

}  // namespace

std::vector<GgufKey> sentencepiece_keys(const std::string& path, TokenTable& table) {
  const SentencePieceModel model = read_sentencepiece(path);
  check_sentencepiece(model, path);
  for (uint64_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    if (piece.type == TokenKind::kUserDefined)
      table.add(id, piece.text, false);
    else
      table.set(id, piece.text, piece.type, piece.score);
  }
  std::vector<GgufKey> keys = {{"tokenizer.ggml.add_space_prefix", model.adds_prefix}};
  const auto add_id = [&](const char* key, int64_t id) {
    if (id >= 0 && uint64_t(id) < model.pieces.size()) keys.emplace_back(key, uint32_t(id));
  };
  add_id("tokenizer.ggml.bos_token_id", model.bos);
  add_id("tokenizer.ggml.eos_token_id", model.eos);
  add_id("tokenizer.ggml.unknown_token_id", model.unknown);
  add_id("tokenizer.ggml.padding_token_id", model.pad);
  return keys;
}

}  // namespace gxp
