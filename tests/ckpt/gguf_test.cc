#include "lib/ckpt/gguf/gguf.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "lib/ckpt/format.h"
#include "lib/ckpt/gguf/header.h"
#include "tests/catch.h"
#include "tests/ckpt/gguf_samples.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

const std::string kCkptData = GXP_TEST_DATA "/ckpt/";

using GgufSizes = std::vector<std::pair<std::string, std::vector<uint64_t>>>;

// Two channels, a layer, a head, three tokens, four positions; sizes with the fastest first.
GgufSizes tiny_llama_tensors() {
  return {{"token_embd.weight", {2, 3}},        {"output_norm.weight", {2}},
          {"blk.0.attn_norm.weight", {2}},      {"blk.0.attn_q.weight", {2, 2}},
          {"blk.0.attn_k.weight", {2, 2}},      {"blk.0.attn_v.weight", {2, 2}},
          {"blk.0.attn_output.weight", {2, 2}}, {"blk.0.ffn_norm.weight", {2}},
          {"blk.0.ffn_gate.weight", {2, 5}},    {"blk.0.ffn_up.weight", {2, 5}},
          {"blk.0.ffn_down.weight", {5, 2}}};
}

GgufSizes tiny_gpt2_tensors() {
  return {{"token_embd.weight", {2, 3}},        {"position_embd.weight", {2, 4}},
          {"blk.0.attn_norm.weight", {2}},      {"blk.0.attn_norm.bias", {2}},
          {"blk.0.attn_qkv.weight", {2, 6}},    {"blk.0.attn_qkv.bias", {6}},
          {"blk.0.attn_output.weight", {2, 2}}, {"blk.0.attn_output.bias", {2}},
          {"blk.0.ffn_norm.weight", {2}},       {"blk.0.ffn_norm.bias", {2}},
          {"blk.0.ffn_up.weight", {2, 8}},      {"blk.0.ffn_up.bias", {8}},
          {"blk.0.ffn_down.weight", {8, 2}},    {"blk.0.ffn_down.bias", {2}},
          {"output_norm.weight", {2}},          {"output_norm.bias", {2}}};
}

// A file with the keys of a model of such sizes, `more` keys, and the tensors.
std::string tiny_model(const std::string& family, const GgufSizes& tensors,
                       const std::vector<GgufBytes>& more = {}) {
  const bool is_llama = family == "llama";
  GgufBytes bytes;
  bytes.head(tensors.size(), 7 + more.size()).string("general.architecture", family);
  bytes.u32(family + ".block_count", 1).u32(family + ".context_length", 4);
  bytes.u32(family + ".embedding_length", 2);
  bytes.u32(family + ".feed_forward_length", is_llama ? 5 : 8);
  bytes.u32(family + ".attention.head_count", 1);
  bytes.f32(family + ".attention.layer_norm_" + (is_llama ? "rms_epsilon" : "epsilon"), 1e-6f);
  for (const GgufBytes& key : more) bytes.append(key);
  uint64_t offset = 0;
  for (const auto& [name, sizes] : tensors) {
    bytes.tensor(name, sizes, 0, offset);
    offset += (4 * checked_count(sizes).value() + 31) / 32 * 32;
  }
  return bytes.align().data(offset);
}

// model.family of what is read; "none" if it is no model.
std::string family_of(const TemporaryDirectory& dir, const std::string& bytes) {
  write_bytes(dir / "m.gguf", bytes);
  return find_value(read_checkpoint(dir / "m.gguf").config, "model.family").value_or("none");
}

NamedTensors convert_to(const std::string& format, const NamedTensors& from,
                        const std::string& to) {
  write_checkpoint(from, find_format(format), to, {});
  return read_checkpoint(to);
}

GgufHeader header_of(const std::string& path) { return read_gguf_header(InputFile(path)); }

}  // namespace

TEST_CASE("the file of the gguf library is read as it says", "[ckpt]") {
  const auto json = nlohmann::json::parse(read_bytes(kCkptData + "gguf/expected.json"));
  const NamedTensors read = read_checkpoint(kCkptData + "gguf/tiny.gguf");
  CHECK(read.format == "gguf");
  CHECK(read.tensors.size() == json["tensors"].size());
  for (const NamedTensor& tensor : read.tensors) {
    const auto& expected = json["tensors"].at(tensor.info.name);
    CAPTURE(tensor.info.name);
    CHECK(tensor.info.shape == expected["shape"].get<std::vector<uint64_t>>());
    CHECK(to_string(tensor.info.dtype) == expected["dtype"]);
    CHECK(sha256_hex(tensor) == expected["sha256"]);
  }
  CHECK(read.config.empty());  // a Llama without its keys
  const std::map<std::string, std::string> metadata = {{"general.architecture", "llama"},
                                                       {"general.name", "gxp-tiny"},
                                                       {"llama.block_count", "2"},
                                                       {"llama.context_length", "24"},
                                                       {"llama.embedding_length", "16"},
                                                       {"llama.attention.head_count", "2"},
                                                       {"gxp.flag", "true"},
                                                       {"gxp.f64", "0.1"}};
  CHECK(read.metadata == metadata);
}

TEST_CASE("a Hugging Face model survives GGUF bit by bit", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string model =
      GENERATE("hf_llama_tied_gqa", "hf_llama_untied_bf16_sharded", "hf_gpt2");
  CAPTURE(model);
  const NamedTensors original = read_checkpoint(kCkptData + model);
  const NamedTensors stored = convert_to("gguf", original, dir / "m.gguf");
  CHECK(digests(stored) == digests(original));
  for (const auto& [key, value] : original.config) CHECK(find_value(stored.config, key) == value);
  CHECK(digests(convert_to("huggingface", stored, dir / "back")) == digests(original));
}

TEST_CASE("the gguf library finds the model that gxp wrote", "[ckpt]") {
  const char* const python = std::getenv("GXP_PEER_PYTHON");
  const TemporaryDirectory dir;
  for (const char* model : {"hf_llama_tied_gqa", "hf_llama_untied_bf16_sharded", "hf_gpt2"}) {
    CAPTURE(model);
    convert_to("gguf", read_checkpoint(kCkptData + model), dir / "m.gguf");
    const std::string command =
        fmt::format("'{}' '{}/tests/ckpt/peers/compare_gguf.py' '{}' '{}' && rm '{}'",
                    python == nullptr ? "python3" : python, GXP_SOURCE_DIR, dir / "m.gguf",
                    kCkptData + model, dir / "m.gguf");
    const int status = std::system(command.c_str());
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127)) {
      WARN("skipped: python3, or GXP_PEER_PYTHON, has no gguf");
      return;
    }
    CHECK(status == 0);
  }
}

TEST_CASE("GGUF has llama.cpp's names, keys and types", "[ckpt]") {
  const TemporaryDirectory dir;
  convert_to("gguf", read_checkpoint(kCkptData + "hf_llama_untied_bf16_sharded"), dir / "m.gguf");
  const GgufHeader header = header_of(dir / "m.gguf");
  CHECK(header.keys.at("general.architecture") == GgufValue("llama"));
  CHECK(header.keys.at("general.file_type") == GgufValue(uint64_t{32}));
  CHECK(header.keys.at("llama.block_count") == GgufValue(uint64_t{2}));
  CHECK(header.keys.at("llama.rope.dimension_count") == GgufValue(uint64_t{8}));
  CHECK(header.keys.at("llama.attention.layer_norm_rms_epsilon") == GgufValue(1e-6f));
  CHECK(header.tensors.front() ==
        TensorInfo{"token_embd.weight", Role::kWeight, StorageDType::kBF16, {67, 24}});
  for (const TensorInfo& info : header.tensors) {
    const bool is_norm = info.name.ends_with("norm.weight");
    CHECK(info.dtype == (is_norm ? StorageDType::kF32 : StorageDType::kBF16));
  }
  CHECK(header.tensors.back().name == "output.weight");
}

TEST_CASE("GGUF's queries and keys are in the order of interleaved positions", "[ckpt]") {
  const TemporaryDirectory dir;
  NamedTensors model = read_checkpoint(kCkptData + "hf_llama_tied_gqa");  // heads of 8 channels
  const std::string name = GENERATE("q", "k", "v");
  const std::string ours = fmt::format("model.layers.1.self_attn.{}_proj.weight", name);
  for (NamedTensor& tensor : model.tensors) {
    if (tensor.info.name == ours) tensor = counting_tensor(ours, tensor.info.shape);
  }
  write_checkpoint(model, find_format("gguf"), dir / "m.gguf", {});
  const GgufHeader header = header_of(dir / "m.gguf");
  const std::string theirs = fmt::format("blk.1.attn_{}.weight", name);
  const auto place =
      size_t(std::ranges::find(header.tensors, theirs, &TensorInfo::name) - header.tensors.begin());
  const uint64_t columns = header.tensors[place].shape[1];
  std::vector<float> values(header.tensors[place].count());
  InputFile(dir / "m.gguf").read(header.offsets[place], memory_of(values));
  const std::vector<uint64_t> turned = {0, 4, 1, 5, 2, 6, 3, 7};
  for (uint64_t row = 0; row < header.tensors[place].shape[0]; ++row) {
    const uint64_t source = name == "v" ? row : row / 8 * 8 + turned[row % 8];
    CHECK(values[row * columns] == float(source * columns));
  }
}

TEST_CASE("a Llama in GGUF is a model only if gxp knows all of its keys", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto with = [&](const GgufBytes& key) {
    return family_of(dir, tiny_model("llama", tiny_llama_tensors(), {key}));
  };
  CHECK(family_of(dir, tiny_model("llama", tiny_llama_tensors())) == "\"llama\"");
  CHECK(with(GgufBytes().f32("llama.rope.freq_base", 5e5f)) == "\"llama\"");
  CHECK(with(GgufBytes().u32("llama.rope.dimension_count", 2)) == "\"llama\"");
  CHECK(with(GgufBytes().u32("tokenizer.ggml.bos_token_id", 1)) == "\"llama\"");
  const std::vector<GgufBytes> unknown = {GgufBytes().u32("llama.rope.dimension_count", 1),
                                          GgufBytes().u32("llama.attention.head_count_kv", 0),
                                          GgufBytes().u32("llama.attention.head_count_kv", 2),
                                          GgufBytes().u32("llama.attention.key_length", 4),
                                          GgufBytes().f32("llama.rope.freq_base", -1),
                                          GgufBytes().string("llama.rope.scaling.type", "yarn"),
                                          GgufBytes().u32("llama.expert_count", 8),
                                          GgufBytes().u32("llama.vocab_size", 4)};
  for (const GgufBytes& key : unknown) {
    CAPTURE(std::string(key));
    CHECK(with(key) == "none");
  }
}

TEST_CASE("a model in GGUF has its tensors and no others", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string family = GENERATE("llama", "gpt2");
  const GgufSizes tensors = family == "llama" ? tiny_llama_tensors() : tiny_gpt2_tensors();
  CAPTURE(family);
  CHECK(family_of(dir, tiny_model(family, tensors)) == fmt::format("\"{}\"", family));
  for (size_t i = 0; i < tensors.size(); ++i) {
    CAPTURE(tensors[i].first);
    GgufSizes changed = tensors;
    changed[i].first = "odd";
    CHECK(family_of(dir, tiny_model(family, changed)) == "none");
    changed = tensors;
    changed[i].second.front() += 1;
    CHECK(family_of(dir, tiny_model(family, changed)) == "none");
    changed = tensors;
    changed.emplace_back("rope_freqs.weight", std::vector<uint64_t>{1});
    CHECK(family_of(dir, tiny_model(family, changed)) == "none");
  }
}

TEST_CASE("sizes of a hostile GGUF file make no model and take no memory", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string key = GENERATE("block_count", "context_length", "embedding_length",
                                   "feed_forward_length", "attention.head_count");
  for (const uint32_t value : {0u, 3u, uint32_t(INT32_MAX), UINT32_MAX}) {
    CAPTURE(key, value);
    std::string bytes = tiny_model("llama", tiny_llama_tensors());
    std::memcpy(bytes.data() + bytes.find(key) + key.size() + 4, &value, sizeof(value));
    const bool is_a_context = key == "context_length" && value == 3;
    CHECK(family_of(dir, bytes) == (is_a_context ? "\"llama\"" : "none"));
  }
}

TEST_CASE("a GPT-2 in GGUF may store the head that it ties", "[ckpt]") {
  const TemporaryDirectory dir;
  GgufSizes tensors = tiny_gpt2_tensors();
  tensors.emplace_back("output.weight", std::vector<uint64_t>{2, 3});  // all data are equal
  write_bytes(dir / "m.gguf", tiny_model("gpt2", tensors));
  CHECK(find_tensor(read_checkpoint(dir / "m.gguf"), "lm_head.weight") == nullptr);
  CHECK(find_value(read_checkpoint(dir / "m.gguf").config, "model.tied_head") == "true");
  CHECK(read_weights(dir / "m.gguf").tensors.size() == tensors.size() - 1);
}

TEST_CASE("named tensors of no known model keep their names in GGUF", "[ckpt]") {
  const TemporaryDirectory dir;
  NamedTensors source{.tensors = {counting_tensor("a.weight", {3, 2}), counting_tensor("s", {})},
                      .metadata = {{"general.architecture", "bert"}, {"general.name", "mine"}}};
  source.tensors.push_back(counting_tensor("a.weight", {6}, 1, Role::kAdamM));
  const NamedTensors read = convert_to("gguf", source, dir / "m.gguf");
  source.tensors.pop_back();
  CHECK(digests(read) == digests(source));
  CHECK(read.metadata == source.metadata);
  CHECK(read.config.empty());
}

TEST_CASE("what GGUF cannot hold is refused, and no file is made", "[ckpt]") {
  const TemporaryDirectory dir;
  NamedTensors llama = read_checkpoint(kCkptData + "hf_llama_tied_gqa");
  for (auto& [key, value] : llama.config) {
    if (key == "model.norm_eps") value = "1.00000001e-05";
  }
  NamedTensors other{.tensors = {counting_tensor("a", {2})},
                     .config = {{"model.family", "\"bloom\""}}};
  NamedTensors wide{.tensors = {counting_tensor("a", {2})}};
  wide.tensors.front().info.dtype = StorageDType::kU32;
  NamedTensors odd = read_checkpoint(kCkptData + "hf_gpt2");
  for (auto& [key, value] : odd.config) {
    if (key == "model.heads") value = "5";
  }
  const std::vector<std::pair<NamedTensors, std::string>> cases = {
      {odd, "model.heads must divide model.hidden (24), is 5"},
      {llama, "F32 cannot represent"},
      {other, "the source does not record model.vocab_size"},
      {wide, "'a' is U32"},
      {{.tensors = {counting_tensor("a", {1, 1, 1, 1, 1})}}, "5 dimensions"},
      {{.tensors = {counting_tensor(std::string(64, 'a'), {1})}}, "has 64 bytes"}};
  for (const auto& [model, words] : cases) {
    CAPTURE(words);
    const Caught caught =
        error_of([&] { write_checkpoint(model, find_format("gguf"), dir / "x", {}); });
    CHECK(caught.kind == ErrorKind::kConfig);
    CHECK(caught.says(words));
  }
  CHECK(list(dir.path()).empty());
}

}  // namespace gxp
