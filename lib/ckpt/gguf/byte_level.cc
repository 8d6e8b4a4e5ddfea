// Byte-level BPE: tokenizer.ggml.model "gpt2".
#include <algorithm>
#include <array>

#include "lib/base/text/joined.h"
#include "lib/ckpt/gguf/token_table.h"

namespace gxp {
namespace {

// The steps of a pre_tokenizer, one a line, as step_in_words() has them. llama.cpp takes a word that
// is a token as it is, whatever the merges say, for some of its names.
struct PreTokenizer {
  std::string_view name;
  std::string_view steps;
  bool ignores_merges = false;
};

constexpr std::array kPreTokenizers = {
    PreTokenizer{"gpt-2", "ByteLevel with its pattern"},
    PreTokenizer{"starcoder", "Digits\nByteLevel with its pattern"},
    PreTokenizer{
        "llama-bpe",
        R"(Split (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
ByteLevel)",
        true},
    PreTokenizer{
        "dbrx",
        R"(Split (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
ByteLevel)"},
    PreTokenizer{
        "qwen2",
        R"(Split (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
ByteLevel)"},
    PreTokenizer{
        "tekken",
        R"(Split [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
ByteLevel)",
        true},
    PreTokenizer{
        "gpt-4o",
        R"(Split [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
ByteLevel)"}};

std::string step_in_words(const Json& step) {
  const std::string type = type_of(step);
  if (type == "ByteLevel" && value_in(step, "add_prefix_space") == false)
    return value_in(step, "use_regex") == false ? type : type + " with its pattern";
  if (type == "Digits" && value_in(step, "individual_digits") == true) return type;
  const Json pattern = value_in(value_in(step, "pattern"), "Regex");
  if (type == "Split" && pattern.is_string() && value_in(step, "behavior") == "Isolated" &&
      value_in(step, "invert") == false)
    return fmt::format("Split {}", pattern.get<std::string>());
  return write_json(step);
}

std::string steps_in_words(const Json& pre_tokenizer) {
  if (type_of(pre_tokenizer) != "Sequence") return step_in_words(pre_tokenizer);
  std::vector<std::string> steps;
  for (const Json& step : value_in(pre_tokenizer, "pretokenizers"))
    steps.push_back(step_in_words(step));
  return joined(steps, "\n");
}

std::string on_one_line(std::string steps) {
  for (size_t at = 0; (at = steps.find('\n', at)) != std::string::npos;)
    steps.replace(at, 1, ", then ");
  return steps;
}

std::string pre_tokenizer_name(const TokenizerJsons& jsons) {
  const std::string steps = steps_in_words(value_in(jsons.tokenizer, "pre_tokenizer"));
  const bool ignores = value_in(value_in(jsons.tokenizer, "model"), "ignore_merges") == true;
  std::vector<std::string_view> names;
  for (const PreTokenizer& row : kPreTokenizers) {
    if (row.steps == steps && row.ignores_merges == ignores) return std::string(row.name);
    names.push_back(row.name);
  }
  refuse_tokenizer(jsons.file,
                   "its pre_tokenizer{} is none of those that gxp knows llama.cpp's names of ({}): "
                   "{}",
                   ignores ? ", with ignore_merges," : "", joined(names, ", "), on_one_line(steps));
}

void check_normalizer(const Json& normalizer, const std::string& file, TokenTable& table) {
  if (normalizer.is_null()) return;
  const std::string type = type_of(normalizer);
  if (type == "Sequence") {
    for (const Json& step : value_in(normalizer, "normalizers"))
      check_normalizer(step, file, table);
  } else if (type == "NFC") {
    table.warn(fmt::format("{}: its normalizer is NFC, which llama.cpp does not apply", file));
  } else {
    refuse_tokenizer(file, "its normalizer is {}, and llama.cpp has none", type);
  }
}

void check_model(const Json& model, const std::string& file) {
  if (type_of(model) != "BPE") refuse_tokenizer(file, "its model is {}, not BPE", type_of(model));
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix", "dropout"}) {
    const Json value = value_in(model, key);
    const bool is_off =
        value.is_null() || value == 0.0 || (value.is_string() && value.get<std::string>().empty());
    if (!is_off)
      refuse_tokenizer(file, "its model.{} is {}, which llama.cpp does not have", key,
                       write_json(value));
  }
}

std::string merge_in_words(const Json& merge, const std::string& where) {
  if (merge.is_string()) return merge.get<std::string>();
  if (!merge.is_array() || merge.size() != 2)
    fail(ErrorKind::kCorrupt, "{}: a merge is no pair of tokens", where);
  const std::string left = to_text(merge[0], where), right = to_text(merge[1], where);
  if (left.find(' ') != std::string::npos || right.find(' ') != std::string::npos)
    fail(ErrorKind::kCorrupt, "{}: a merge of byte-level tokens has a space", where);
  return fmt::format("{} {}", left, right);
}

}  // namespace

std::vector<GgufKey> byte_level_keys(const TokenizerJsons& jsons, TokenTable& table) {
  const std::string where = "read " + jsons.file;
  const Json model = value_in(jsons.tokenizer, "model");
  check_model(model, jsons.file);
  check_normalizer(value_in(jsons.tokenizer, "normalizer"), jsons.file, table);
  const std::string pre = pre_tokenizer_name(jsons);
  for (const auto& [token, id] : to_object(member(model, "vocab", where), where).items())
    table.set(to_unsigned(id, where), token, TokenKind::kNormal);
  add_tokens(jsons, table);
  std::vector<std::string> merges;
  for (const Json& merge : to_array(member(model, "merges", where), where))
    merges.push_back(merge_in_words(merge, where));
  std::vector<GgufKey> keys = table.keys("gpt2", pre);
  keys.emplace_back("tokenizer.ggml.merges", std::move(merges));
  return keys;
}

}  // namespace gxp
