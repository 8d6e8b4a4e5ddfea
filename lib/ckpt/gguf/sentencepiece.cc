// tokenizer.model, a protocol buffer of SentencePiece: tokenizer.ggml.model "llama".
#include "lib/ckpt/file.h"
#include "lib/ckpt/gguf/token_table.h"

namespace gxp {
namespace {

constexpr uint64_t kMaxModelBytes = 64u << 20;

void check_sentencepiece(const SentencePieceModel& model, const std::string& path) {
  const auto refuse_if = [&](bool wrong, std::string_view what) {
    if (wrong)
      refuse_tokenizer(path, "it {}, which llama.cpp does not do as SentencePiece does", what);
  };
  refuse_if(model.model_type != SentencePieceModel::kBpe, "is no BPE model");
  refuse_if(model.has_character_map, "normalizes characters");
  refuse_if(model.removes_spaces, "removes extra spaces");
  refuse_if(!model.escapes_spaces, "does not mark spaces");
  refuse_if(model.space_is_suffix, "puts spaces behind words");
}

}  // namespace

std::vector<GgufKey> sentencepiece_keys(const std::string& path, TokenTable& table) {
  const SentencePieceModel model = parse_sentencepiece(read_text(path, kMaxModelBytes), path);
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
