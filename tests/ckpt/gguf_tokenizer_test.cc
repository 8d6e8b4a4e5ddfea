// Tokenizers of Hugging Face directories in GGUF. The values that real libraries read of such files:
// gguf_peers.py.
#include "lib/ckpt/gguf/tokenizer.h"

#include <nlohmann/json.hpp>

#include "tests/ckpt/conversions.h"
#include "tests/ckpt/gguf_samples.h"

namespace gxp {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
using Types = std::vector<int32_t>;

const std::string kMark = "\xe2\x96\x81";  // SentencePiece's space
constexpr const char* kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", use_regex}};
}
json sequence(const json& first, const json& second) {
  return {{"type", "Sequence"}, {"pretokenizers", {first, second}}};
}
json split_by(const std::string& pattern) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

// A tokenizer.json with five tokens and two added ones.
json small_byte_level() {
  return {{"normalizer", nullptr},
          {"pre_tokenizer", byte_level(true)},
          {"post_processor", nullptr},
          {"added_tokens",
           {{{"id", 4}, {"content", "<s>"}, {"special", true}},
            {{"id", 6}, {"content", "<tool>"}, {"special", false}}}},
          {"model",
           {{"type", "BPE"},
            {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"\xc4\xa0", 3}}},
            {"merges", json::array({json::array({"a", "b"})})}}}};
}

// The same with SentencePiece's spaces, and a token for each byte.
json small_byte_fallback() {
  json vocab = {{"<unk>", 0}, {kMark, 1}, {"a", 2}, {"b", 3}, {"ab", 4}, {kMark + "ab", 5}};
  vocab[kMark + "a"] = 6;
  for (int byte = 0; byte < 256; ++byte) vocab[fmt::format("<0x{:02X}>", byte)] = 7 + byte;
  const json marks = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kMark}};
  const json prefix = {{"type", "Prepend"}, {"prepend", kMark}};
  return {{"normalizer", {{"type", "Sequence"}, {"normalizers", {prefix, marks}}}},
          {"pre_tokenizer", nullptr},
          {"added_tokens", {{{"id", 0}, {"content", "<unk>"}, {"special", true}}}},
          {"model",
           {{"type", "BPE"},
            {"byte_fallback", true},
            {"unk_token", "<unk>"},
            {"vocab", vocab},
            {"merges", Strings{"a b", kMark + " a", kMark + " ab", kMark + "a b"}}}}};
}

// The keys of the tokenizer in a directory of those files.
GgufTokenizer tokenizer_of(const TemporaryDirectory& dir,
                           const std::map<std::string, std::string>& files, int vocab_size = 300) {
  Strings paths;
  for (const auto& [name, text] : files) {
    write_bytes(dir / name, text);
    paths.push_back(dir / name);
  }
  return make_gguf_tokenizer(paths, R"({"eos_token_id": 2})", vocab_size);
}

bool has_key(const GgufTokenizer& tokenizer, const GgufKey& key) {
  return std::ranges::find(tokenizer.keys, key) != tokenizer.keys.end();
}

std::string reason_against(const json& tokenizer, int vocab_size = 300) {
  const TemporaryDirectory dir;
  const auto error = error_of([&] {
    tokenizer_of(dir, {{"tokenizer.json", tokenizer.dump()}}, vocab_size);
  });
  CHECK(error.kind == ErrorKind::kConfig);
  return error.message;
}

// A message of protocol buffers.
std::string proto(uint64_t field, const std::string& bytes) {
  return std::string{char(field << 3 | 2), char(bytes.size())} + bytes;
}
std::string proto(uint64_t field, char number) { return {char(field << 3), number}; }
std::string piece(const std::string& text, float score, char type) {
  std::string bytes = proto(1, text) + std::string{char(2 << 3 | 5)};
  bytes.append(reinterpret_cast<const char*>(&score), sizeof(score));
  return proto(1, bytes + proto(3, type));
}
std::string small_sentencepiece(char model_type, const std::string& normalizer) {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("<0x00>", 0, 6) +
         piece("ab", -1, 1) + piece(kMark + kMark, 0, 4) + proto(2, proto(3, model_type)) +
         proto(3, normalizer);
}

}  // namespace

TEST_CASE("a byte-level tokenizer has llama.cpp's name of its pattern, or is refused", "[ckpt]") {
  const json digits = {{"type", "Digits"}, {"individual_digits", true}};
  const std::vector<std::tuple<json, bool, std::string>> rows = {
      {byte_level(true), false, "gpt-2"},
      {sequence(digits, byte_level(true)), false, "starcoder"},
      {sequence(split_by(kLlama3Pattern), byte_level(false)), true, "llama-bpe"},
      {sequence(split_by(kLlama3Pattern), byte_level(false)), false, "dbrx"},
      {sequence(split_by(kQwenPattern), byte_level(false)), false, "qwen2"},
      {sequence(split_by(kQwenPattern), byte_level(false)), true, ""},
      {sequence(split_by("x"), byte_level(false)), false, ""},
      {sequence(split_by(kQwenPattern), byte_level(true)), false, ""},
      {byte_level(false), false, ""},
      {json{{"type", "ByteLevel"}, {"add_prefix_space", true}}, false, ""},
      {json{{"type", "Whitespace"}}, false, ""},
      {json(), false, ""}};
  for (const auto& [step, ignores, name] : rows) {
    CAPTURE(step.dump(), ignores, name);
    json tokenizer = small_byte_level();
    tokenizer["pre_tokenizer"] = step;
    tokenizer["model"]["ignore_merges"] = ignores;
    if (name.empty()) {
      CHECK_THAT(reason_against(tokenizer), Contains("its pre_tokenizer"));
      continue;
    }
    const TemporaryDirectory dir;
    const auto made = tokenizer_of(dir, {{"tokenizer.json", tokenizer.dump()}});
    CHECK(has_key(made, {"tokenizer.ggml.pre", name}));
  }
}

TEST_CASE("a byte-level tokenizer's tokens, types and merges are llama.cpp's", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto made = tokenizer_of(dir,
                                 {{"tokenizer.json", small_byte_level().dump()},
                                  {"chat_template.jinja", "{{ x }}"},
                                  {"tokenizer_config.json", R"({"bos_token": "<s>"})"}},
                                 8);
  const Strings tokens = {"a", "b", "ab", "\xc4\xa0", "<s>", "[PAD5]", "<tool>", "[PAD7]"};
  CHECK(made.is_there);
  for (const GgufKey& key :
       {GgufKey{"tokenizer.ggml.model", "gpt2"}, GgufKey{"tokenizer.ggml.tokens", tokens},
        GgufKey{"tokenizer.ggml.token_type", Types{1, 1, 1, 1, 3, 5, 4, 5}},
        GgufKey{"tokenizer.ggml.merges", Strings{"a b"}},
        GgufKey{"tokenizer.ggml.bos_token_id", 4u}, GgufKey{"tokenizer.ggml.eos_token_id", 2u},
        GgufKey{"tokenizer.ggml.add_bos_token", false},
        GgufKey{"tokenizer.ggml.add_eos_token", false},
        GgufKey{"tokenizer.chat_template", "{{ x }}"},
        GgufKey{"tokenizer.huggingface.json", small_byte_level().dump()}}) {
    CAPTURE(key.first);
    CHECK(has_key(made, key));
  }
}

TEST_CASE("the post_processor's tokens are those that begin and end a text", "[ckpt]") {
  const TemporaryDirectory dir;
  json tokenizer = small_byte_level();
  const json text = {{"Sequence", {{"id", "A"}}}}, start = {{"SpecialToken", {{"id", "<s>"}}}};
  tokenizer["post_processor"] = {{"type", "TemplateProcessing"}, {"single", {start, text}}};
  const auto made = tokenizer_of(dir, {{"tokenizer.json", tokenizer.dump()}});
  CHECK(has_key(made, {"tokenizer.ggml.bos_token_id", 4u}));
  CHECK(has_key(made, {"tokenizer.ggml.add_bos_token", true}));
  CHECK(has_key(made, {"tokenizer.ggml.add_eos_token", false}));
  tokenizer["post_processor"]["single"] = {text, start};  // eos_token_id is 2
  CHECK_THAT(reason_against(tokenizer), Contains("which is not the eos_token"));
  tokenizer["post_processor"]["single"] = {start, start, text};
  CHECK_THAT(reason_against(tokenizer), Contains("two tokens at one end"));
  tokenizer["post_processor"] = {{"type", "RobertaProcessing"}};
  CHECK_THAT(reason_against(tokenizer), Contains("its post_processor is RobertaProcessing"));
}

TEST_CASE("what llama.cpp's BPE cannot do is refused", "[ckpt]") {
  const auto with = [](const char* part, const char* key, const json& value) {
    json tokenizer = small_byte_level();
    (*part == 0 ? tokenizer : tokenizer[part])[key] = value;
    return tokenizer;
  };
  CHECK_THAT(reason_against(with("model", "type", "Unigram")), Contains("its model is Unigram"));
  CHECK_THAT(reason_against(with("model", "dropout", 0.1)), Contains("its model.dropout is 0.1"));
  CHECK_THAT(reason_against(with("model", "end_of_word_suffix", "</w>")),
             Contains("model.end_of_word_suffix"));
  CHECK_THAT(reason_against(with("", "normalizer", {{"type", "Lowercase"}})),
             Contains("its normalizer is Lowercase"));
  CHECK_THAT(reason_against(small_byte_level(), 6), Contains("beyond model.vocab_size (6)"));
  const TemporaryDirectory dir;
  const auto nfc =
      tokenizer_of(dir, {{"tokenizer.json", with("", "normalizer", {{"type", "NFC"}}).dump()}});
  CHECK(nfc.warnings.size() == 1);
}

TEST_CASE("a tokenizer.json with a fallback to bytes has its merges' places as scores", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto made = tokenizer_of(dir, {{"tokenizer.json", small_byte_fallback().dump()}}, 263);
  CHECK(has_key(made, {"tokenizer.ggml.model", "llama"}));
  CHECK(has_key(made, {"tokenizer.ggml.add_space_prefix", true}));
  const auto scores = std::ranges::find(made.keys, "tokenizer.ggml.scores", &GgufKey::first);
  REQUIRE(scores != made.keys.end());
  auto values = std::get<std::vector<float>>(scores->second);
  values.resize(7);
  CHECK(values == std::vector<float>{0, 0, 0, 0, 0, -2, -1});
  const auto types = std::ranges::find(made.keys, "tokenizer.ggml.token_type", &GgufKey::first);
  auto kinds = std::get<Types>(types->second);
  kinds.resize(8);
  CHECK(kinds == Types{2, 1, 1, 1, 1, 1, 1, 6});
}

TEST_CASE("a fallback to bytes that llama.cpp would compute otherwise is refused", "[ckpt]") {
  const auto changed = [](const std::function<void(json&)>& change) {
    json tokenizer = small_byte_fallback();
    change(tokenizer);
    return reason_against(tokenizer);
  };
  CHECK_THAT(changed([](json& t) { t["model"]["merges"].erase(3); }),
             Contains("are not among its merges"));
  CHECK_THAT(changed([](json& t) { std::swap(t["model"]["merges"][0], t["model"]["merges"][2]); }),
             Contains("not one behind another"));
  CHECK_THAT(changed([](json& t) { t["model"]["vocab"].erase("<0x0A>"); }),
             Contains("lacks the token <0x0A>"));
  CHECK_THAT(changed([](json& t) {
               t["normalizer"]["normalizers"][1] = {{"type", "NFKC"}};
             }),
             Contains("NFKC"));
  CHECK_THAT(changed([](json& t) { t["normalizer"] = nullptr; }), Contains("does not mark spaces"));
  CHECK_THAT(changed([](json& t) { t["model"]["ignore_merges"] = true; }),
             Contains("ignore_merges"));
}

TEST_CASE("a tokenizer.model has SentencePiece's tokens, scores and types", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string plain = proto(3, char(1)) + proto(4, char(0));
  const auto made = tokenizer_of(dir, {{"tokenizer.model", small_sentencepiece(2, plain)}}, 7);
  const Strings tokens = {"<unk>", "<s>", "</s>", "<0x00>", "ab", "  ", "[PAD6]"};
  CHECK(has_key(made, {"tokenizer.ggml.tokens", tokens}));
  CHECK(has_key(made, {"tokenizer.ggml.token_type", Types{2, 3, 3, 6, 1, 4, 5}}));
  CHECK(
      has_key(made, {"tokenizer.ggml.scores", std::vector<float>{0, 0, 0, 0, -1, -1000, -10000}}));
  CHECK(has_key(made, {"tokenizer.ggml.bos_token_id", 1u}));
  CHECK(has_key(made, {"tokenizer.ggml.add_space_prefix", true}));
  const std::vector<std::pair<std::string, std::string>> refused = {
      {small_sentencepiece(1, plain), "is no BPE model"},
      {small_sentencepiece(2, proto(2, "map") + plain), "normalizes characters"},
      {small_sentencepiece(2, proto(3, char(1))), "removes extra spaces"}};
  for (const auto& row : refused) {
    const auto error = error_of([&] { tokenizer_of(dir, {{"tokenizer.model", row.first}}, 7); });
    CHECK_THAT(error.message, Contains(row.second));
  }
}

TEST_CASE("a cut tokenizer.model is no tokenizer", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string whole = small_sentencepiece(2, proto(4, char(0)));
  for (const size_t bytes : {size_t{1}, size_t{3}, whole.size() - 1}) {
    const auto error = error_of([&] {
      tokenizer_of(dir, {{"tokenizer.model", whole.substr(0, bytes)}});
    });
    CHECK(error.kind == ErrorKind::kCorrupt);
  }
}

TEST_CASE("vocab.json and merges.txt are GPT-2's tokenizer", "[ckpt]") {
  const TemporaryDirectory dir;
  std::map<std::string, std::string> files = {{"vocab.json", R"({"a": 0, "b": 1, "ab": 2})"},
                                              {"merges.txt", "#version: 0.2\na b\n"}};
  const auto made = tokenizer_of(dir, files, 3);
  CHECK(has_key(made, {"tokenizer.ggml.pre", "gpt-2"}));
  CHECK(has_key(made, {"tokenizer.ggml.merges", Strings{"a b"}}));
  CHECK(has_key(made, {"gxp.file.merges.txt", files["merges.txt"]}));
  files["tokenizer_config.json"] = R"({"tokenizer_class": "OtherTokenizer"})";
  CHECK_THAT(error_of([&] { tokenizer_of(dir, files, 3); }).message, Contains("OtherTokenizer"));
}

TEST_CASE("a directory's tokenizer comes back from GGUF as it was", "[ckpt]") {
  const TemporaryDirectory dir;
  fs::copy(GXP_TEST_DATA "/models/llama-plain", dir / "model");
  const std::map<std::string, std::string> files = {
      {"tokenizer.json", small_byte_level().dump(1)},
      {"tokenizer_config.json", R"({"bos_token": "<s>"})"},
      {"generation_config.json", "{}"},
      {"chat_template.jinja", "{{ messages }}"}};
  for (const auto& [name, text] : files) write_bytes(dir / "model" + "/" + name, text);
  const NamedTensors stored = converted(read_checkpoint(dir / "model"), "gguf", dir / "m.gguf");
  CHECK(stored.tokenizer.files == files);
  converted(stored, "gguf", dir / "again.gguf");
  CHECK(read_checkpoint(dir / "again.gguf").tokenizer.gguf_keys == stored.tokenizer.gguf_keys);
  const NamedTensors back =
      converted(read_checkpoint(dir / "again.gguf"), "huggingface", dir / "back");
  CHECK(back.companions.size() == files.size());
  for (const auto& [name, text] : files) CHECK(read_bytes(dir / "back" + "/" + name) == text);
}

TEST_CASE("a GGUF file names no other files than a directory's", "[ckpt]") {
  const TemporaryDirectory dir;
  GgufBytes bytes;
  bytes.head(1, 4).string("gxp.file.../evil", "x").string("gxp.file.README.md", "x");
  bytes.string("tokenizer.ggml.model", "llama").string("gxp.file.merges.txt", "x");
  write_bytes(dir / "m.gguf", bytes.tensor("a", {1}, 0, 0).align().data(32));
  const NamedTensors read = read_checkpoint(dir / "m.gguf");
  CHECK(read.tokenizer.files == std::map<std::string, std::string>{{"merges.txt", "x"}});
  CHECK(read.tokenizer.gguf_key_count == 1);
}

}  // namespace gxp
