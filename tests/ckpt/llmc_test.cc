#include "lib/ckpt/llmc/llmc.h"

#include <nlohmann/json.hpp>

#include "lib/ckpt/format.h"
#include "lib/ckpt/tensor_views.h"
#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

const std::string kLlmcFixtures = GXP_TEST_DATA "/ckpt/llmc_bin/";
const std::string kGpt2Fixture = GXP_TEST_DATA "/ckpt/hf_gpt2";

// llm.c's blocks over all layers by the names of their parts; # is the layer.
const std::map<std::string, std::string> kBlocks = {{"wte", "wte.weight"},
                                                    {"wpe", "wpe.weight"},
                                                    {"ln1w", "h.#.ln_1.weight"},
                                                    {"ln1b", "h.#.ln_1.bias"},
                                                    {"qkvw", "h.#.attn.c_attn.weight"},
                                                    {"qkvb", "h.#.attn.c_attn.bias"},
                                                    {"attprojw", "h.#.attn.c_proj.weight"},
                                                    {"attprojb", "h.#.attn.c_proj.bias"},
                                                    {"ln2w", "h.#.ln_2.weight"},
                                                    {"ln2b", "h.#.ln_2.bias"},
                                                    {"fcw", "h.#.mlp.c_fc.weight"},
                                                    {"fcb", "h.#.mlp.c_fc.bias"},
                                                    {"fcprojw", "h.#.mlp.c_proj.weight"},
                                                    {"fcprojb", "h.#.mlp.c_proj.bias"},
                                                    {"lnfw", "ln_f.weight"},
                                                    {"lnfb", "ln_f.bias"}};

// The tensor of one layer as llm.c stores it.
NamedTensor layer_of(const NamedTensors& model, std::string name, uint64_t layer) {
  const size_t hash = name.find('#');
  if (hash != std::string::npos) name.replace(hash, 1, fmt::format("{}", layer));
  const NamedTensor& tensor = *find_tensor(model, "transformer." + name);
  return hash != std::string::npos && tensor.info.shape.size() == 2 ? transposed(tensor) : tensor;
}

// The bytes of both layers' tensors, one after the other, as one tensor.
NamedTensor block_of(const NamedTensors& model, const std::string& name) {
  const uint64_t layers = name.find('#') == std::string::npos ? 1 : 2;
  std::string bytes;
  for (uint64_t layer = 0; layer < layers; ++layer) {
    stream(layer_of(model, name, layer), [&](ConstMemory part) {
      bytes.append(reinterpret_cast<const char*>(part.data), part.bytes);
    });
  }
  return {{name, Role::kWeight, StorageDType::kU8, {bytes.size()}},
          [bytes](uint64_t begin, Memory out) {
            std::memcpy(out.data, bytes.data() + begin, out.bytes);
          }};
}

std::string with_field(std::string bytes, size_t field, int32_t value) {
  std::memcpy(bytes.data() + 4 * field, &value, sizeof(value));
  return bytes;
}

struct HostileLlmc {
  std::string bytes;
  std::string words;  // that the message must have
};

std::vector<HostileLlmc> hostile_llmc_files() {
  const std::string good = read_bytes(kLlmcFixtures + "gpt2_fp32.bin");
  return {{good.substr(0, 1023), "truncated: 1023 bytes"},
          {good.substr(0, good.size() - 1), "truncated"},
          {good + '\0', "longer than its header says"},
          {with_field(good, 0, 20240520), "it begins with 20240520"},
          {with_field(good, 1, 1), "version 1 at byte 4"},
          {with_field(good, 1, 5), "longer than its header says"},
          {with_field(good, 2, 0), "the size at byte 8 is 0"},
          {with_field(good, 2, 25), "truncated"},
          {with_field(good, 3, -61), "the size at byte 12 is -61"},
          {with_field(good, 3, 129), "the padded vocabulary at byte 28 is 128, below the 129"},
          {with_field(good, 4, INT32_MAX), "gxp reads at most 4096"},
          {with_field(good, 4, 4096), "truncated"},
          {with_field(good, 5, 3), "3 heads at byte 20 do not divide 16"},
          {with_field(good, 6, INT32_MAX - 1), "more than 2^64"},
          {with_field(good, 6, 18), "truncated"},
          {with_field(good, 7, INT32_MAX), "truncated"},
          {with_field(good, 7, 0), "the size at byte 28 is 0"}};
}

NamedTensors gpt2_with(const std::function<void(NamedTensors&)>& change) {
  NamedTensors model = read_checkpoint(kGpt2Fixture);
  change(model);
  return model;
}

void set_value(NamedTensors& model, const std::string& key, const std::string& value) {
  for (auto& [name, old] : model.config) {
    if (name == key) old = value;
  }
}

}  // namespace

TEST_CASE("files of llm.c hold the blocks that the fixture's description tells", "[ckpt]") {
  const auto [file, list] = GENERATE(table<std::string, std::string>(
      {{"gpt2_fp32.bin", "tensors"}, {"gpt2_bf16.bin", "bf16_tensors"}}));
  const auto expected = nlohmann::json::parse(read_bytes(kLlmcFixtures + "expected.json"))[list];
  const NamedTensors model = read_checkpoint(kLlmcFixtures + file);
  CHECK(model.format == "llmc");
  CHECK(model.tensors.size() == 2 + 2 * 12 + 2);
  for (const auto& [name, block] : expected.items()) {
    CAPTURE(file, name);
    CHECK(sha256_hex(block_of(model, kBlocks.at(name))) == block["sha256"]);
  }
  const NamedTensor& qkv = *find_tensor(model, "transformer.h.1.attn.c_attn.weight");
  CHECK(qkv.info.shape == std::vector<uint64_t>{16, 48});
  CHECK(to_string(qkv.info.dtype) == expected["qkvw"]["dtype"]);
  CHECK(find_value(model.config, "model.family") == "\"gpt2\"");
  CHECK(find_value(model.config, "model.vocab_size") == "61");
  CHECK(find_value(model.config, "model.norm_eps") == "1e-05");
}

TEST_CASE("a file of llm.c is written again with the same bytes", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string file = GENERATE("gpt2_fp32.bin", "gpt2_bf16.bin");
  const std::string by = GENERATE("gxp", "huggingface", "safetensors", "gguf");
  CAPTURE(file, by);
  write_checkpoint(read_checkpoint(kLlmcFixtures + file), find_format(by), dir / "one", {});
  write_checkpoint(read_checkpoint(dir / "one"), find_format("llmc"), dir / "two.bin", {});
  CHECK(read_bytes(dir / "two.bin") == read_bytes(kLlmcFixtures + file));
}

TEST_CASE("every hostile file of llm.c is refused with its name and the fault", "[ckpt]") {
  const TemporaryDirectory dir;
  for (const HostileLlmc& hostile : hostile_llmc_files()) {
    CAPTURE(hostile.words);
    write_bytes(dir / "bad.bin", hostile.bytes);
    const auto [kind, text] = error_of([&] { read_llmc(dir / "bad.bin"); });
    CHECK(kind == ErrorKind::kCorrupt);
    CHECK_THAT(text, Catch::Matchers::Contains(dir / "bad.bin") &&
                         Catch::Matchers::Contains(hostile.words));
  }
}

TEST_CASE("rows of llm.c's table beyond the vocabulary are left out, zero or not", "[ckpt]") {
  const TemporaryDirectory dir;
  std::string bytes = read_bytes(kLlmcFixtures + "gpt2_fp32.bin");
  const auto original = digests(read_llmc(kLlmcFixtures + "gpt2_fp32.bin"));
  bytes[1024 + 4 * 16 * 61] = 1;  // in the first row of padding
  write_bytes(dir / "a.bin", bytes);
  CHECK(digests(read_llmc(dir / "a.bin")) == original);
  // A vocabulary that fills its table has no padding.
  write_bytes(dir / "full.bin", with_field(bytes, 3, 128));
  CHECK(find_tensor(read_llmc(dir / "full.bin"), "transformer.wte.weight")->info.shape.front() ==
        128);
}

TEST_CASE("what llm.c cannot hold is refused, and no file is made", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::vector<std::pair<std::function<void(NamedTensors&)>, std::string>> cases = {
      {[](auto& model) { model.config.clear(); }, "does not describe its model"},
      {[](auto& model) { set_value(model, "model.family", "\"llama\""); }, "is a llama"},
      {[](auto& model) { set_value(model, "model.norm_eps", "1e-06"); }, "uses norm_eps 1e-05"},
      {[](auto& model) { set_value(model, "model.heads", "many"); },
       "model.heads = many is not supported"},
      {[](auto& model) { set_value(model, "model.heads", "5"); },
       "model.heads must divide model.hidden (24), is 5"},
      {[](auto& model) { set_value(model, "model.mlp_hidden", "55"); }, "model.mlp_hidden is 55"},
      {[](auto& model) { set_value(model, "model.activation", "\"gelu\""); },
       "model.activation is \"gelu\", which llm.c does not compute"},
      {[](auto& model) { set_value(model, "model.tied_head", "false"); },
       "model.tied_head is false, which llm.c"},
      {[](auto& model) {
         for (auto& tensor : model.tensors) tensor.info.dtype = StorageDType::kI32;
       },
       "all tensors must be F32 or all BF16"},
      {[](auto& model) { model.tensors.back().info.dtype = StorageDType::kI32; }, "is I32"},
  };
  for (const auto& [change, words] : cases) {
    CAPTURE(words);
    const auto model = gpt2_with(change);
    const Caught caught =
        error_of([&] { write_checkpoint(model, find_format("llmc"), dir / "x.bin", {}); });
    CHECK(caught.kind == ErrorKind::kConfig);
    CHECK(caught.says(words));
  }
  CHECK(list(dir.path()).empty());
}

}  // namespace gxp
