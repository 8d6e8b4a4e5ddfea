// Models of other programs of many kinds, a row each: what is in them is kept through a conversion,
// or the conversion is refused and says what stands against it.
#include <nlohmann/json.hpp>

#include "lib/ckpt/safetensors/safetensors.h"
#include "lib/ckpt/torch/pt_file.h"
#include "tests/ckpt/changed_model.h"
#include "tests/ckpt/conversions.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using nlohmann::json;

const std::string kForeignModels = GXP_TEST_DATA "/ckpt/";
const std::string kTinyLlama =
    "hf_llama_untied_bf16_sharded";  // as many heads of keys as of queries

}  // namespace

TEST_CASE("a Llama whose config.json leaves sizes to their defaults is a Llama", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string format = GENERATE("huggingface", "gguf", "gxp");
  const bool is_null = GENERATE(false, true);
  const NamedTensors model = read_checkpoint(changed_model(dir, kTinyLlama, [&](json& config) {
    for (const char* key : {"head_dim", "num_key_value_heads"}) {
      config.erase(key);
      if (is_null) config[key] = nullptr;
    }
  }));
  const NamedTensors out = converted(model, format, dir / "out");
  const NamedTensors back = converted(out, "huggingface", dir / "back");
  CHECK(digests(back) == digests(model));
  CHECK(config_of(dir / "back")["head_dim"] == 8);
  CHECK(config_of(dir / "back")["num_key_value_heads"] == 3);
}

TEST_CASE("the base of rotary positions is that of the spelling that counts", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto [change, theta] = GENERATE(table<std::string, std::string>({
      {R"({"rope_parameters": null, "rope_scaling": {"rope_type": "default"}})", "10000.0"},
      {R"({"rope_parameters": null, "rope_scaling": {"type": "default"}})", "10000.0"},
      {R"({"rope_parameters": null, "rope_scaling": {}, "rope_theta": 7.0})", "7.0"},
      {R"({"rope_parameters": {"rope_type": "default"}, "rope_theta": 7.0})", "7.0"},
      {R"({"rope_parameters": {"rope_type": "default", "rope_theta": 7.0}})", "7.0"},
      {R"({"rope_parameters": {"rope_type": "linear", "rope_theta": 7.0, "factor": 2.0}})", "7.0"},
      {R"({"rope_parameters": {"type": "dynamic", "rope_theta": 7.0, "factor": 2.0}})", ""},
      {R"({"rope_scaling": {"type": "longrope", "factor": 2.0}})", ""},
      {R"({"rope_scaling": {"rope_type": "default", "rope_theta": 7.0}})", ""},
      {R"({"rope_scaling": {"factor": 2.0}})", ""},
      {R"({"rope_parameters": {"full_attention": {"rope_theta": 7.0}}})", ""},
  }));
  CAPTURE(change);
  const auto model = read_checkpoint(changed_model(
      dir, kTinyLlama, [text = change](json& config) { config.update(json::parse(text)); }));
  CHECK(find_value(model.config, "model.rope_theta").value_or("") == theta);
}

TEST_CASE("numbers that only Python's json writes stay in config.json", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string model = changed_model(dir, "hf_qwen2", [](json&) {});
  const std::string text = R"({"model_type": "mamba2", "tie_word_embeddings": true, "said": "NaN",
      "time_step_limit": [0.0, Infinity], "low": -Infinity, "none": NaN, "escaped": "\"Infinity"})";
  write_bytes(model + "/config.json", text);
  const std::string between = GENERATE("gxp", "safetensors", "huggingface");
  const NamedTensors source = read_checkpoint(model);
  converted(converted(source, between, dir / "between"), "huggingface", dir / "out");
  const std::string written = read_bytes(dir / "out/config.json");
  for (const char* part : {"Infinity\n", "\"low\": -Infinity,", "\"none\": NaN,",
                           R"("said": "NaN")", R"("escaped": "\"Infinity")"})
    CHECK_THAT(written, Contains(part));
  write_bytes(model + "/config.json", R"({"a": "\u0000NaN"})");
  CHECK(error_of([&] { read_checkpoint(model); }).kind == ErrorKind::kCorrupt);
  write_bytes(model + "/config.json", R"({"a": Infinite})");
  CHECK(error_of([&] { read_checkpoint(model); }).kind == ErrorKind::kCorrupt);
}

TEST_CASE("a Hugging Face directory with pytorch_model.bin is read", "[ckpt]") {
  const TemporaryDirectory dir;
  const NamedTensors model = read_checkpoint(kForeignModels + kTinyLlama);
  const std::string path = dir / "model";
  fs::create_directory(path);
  fs::copy(kForeignModels + kTinyLlama + "/config.json", path);
  if (GENERATE(true, false)) {
    write_pt(model, path + "/pytorch_model.bin", {});
  } else {
    NamedTensors parts[2];
    json index;
    for (size_t i = 0; i < model.tensors.size(); ++i) {
      parts[i % 2].tensors.push_back(model.tensors[i]);
      index["weight_map"][model.tensors[i].info.name] =
          fmt::format("pytorch_model-0000{}-of-00002.bin", i % 2 + 1);
    }
    for (size_t k = 0; k < 2; ++k)
      write_pt(parts[k], path + fmt::format("/pytorch_model-0000{}-of-00002.bin", k + 1), {});
    write_bytes(path + "/pytorch_model.bin.index.json", index.dump());
    CHECK(format_at(path + "/pytorch_model.bin.index.json").name == "pt");
  }
  const NamedTensors read = read_checkpoint(path);
  CHECK(read.format == "huggingface");
  CHECK(find_format("huggingface").verify(path) > 0);
  CHECK(digests(converted(read, "huggingface", dir / "out")) == digests(model));
  fs::remove(path + "/config.json");
  CHECK(digests(read_checkpoint(path)) == digests(model));
}

TEST_CASE("an index decides between two files that both have a tensor", "[ckpt]") {
  const TemporaryDirectory dir;
  const NamedTensors first{.tensors = {counting_tensor("a", {3}), counting_tensor("b", {3}, 7)}};
  const NamedTensors second{.tensors = {counting_tensor("b", {3}, 9), counting_tensor("c", {3})}};
  for (const auto& [name, part] : {std::pair("1", &first), std::pair("2", &second)}) {
    write_checkpoint(*part, find_format("safetensors"), dir / fmt::format("{}.safetensors", name),
                     {});
  }
  const std::string index = dir / "model.safetensors.index.json";
  write_bytes(index, R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors",
                                        "c": "2.safetensors"}})");
  const NamedTensors read = read_checkpoint(index);
  CHECK(read.tensors.size() == 3);
  CHECK(sha256_hex(*find_tensor(read, "b")) == sha256_hex(second.tensors[0]));
  write_bytes(index, R"({"weight_map": {"a": "1.safetensors", "c": "2.safetensors"}})");
  CHECK_THAT(error_of([&] { read_checkpoint(index); }).message, Contains("'b' is in two of"));
  write_bytes(index, R"({"weight_map": {"a": "2.safetensors", "b": "1.safetensors"}})");
  CHECK_THAT(error_of([&] { read_checkpoint(index); }).message,
             Contains("'a' into 2.safetensors, but it is in 1.safetensors"));
}

TEST_CASE("a checkpoint without a tensor is refused", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string name = GENERATE("model.safetensors", "model.safetensors.index.json");
  if (name == "model.safetensors")
    write_safetensors_file({}, dir / name);
  else
    write_bytes(dir / name, R"({"weight_map": {}})");
  CHECK_THAT(error_of([&] { read_checkpoint(dir / name); }).message,
             Contains("checkpoint without tensors"));
}

TEST_CASE("tensors for which a known model has no place are kept, or refused by name", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string more = GENERATE("model.layers.0.self_attn.q_proj.bias",
                                    "model.layers.1.mlp.up_proj.weight_scale", "extra");
  NamedTensors model = read_checkpoint(kForeignModels + kTinyLlama);
  model.tensors.push_back(counting_tensor(more, {3}));
  CHECK_THAT(refused_conversion(model, "huggingface", dir), Contains(more));
  const std::string path = changed_model(dir, kTinyLlama, [](json&) {});
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.path().string().find("safetensors") != std::string::npos) fs::remove(entry);
  write_safetensors_file(model, path + "/model.safetensors");
  const NamedTensors read = read_checkpoint(path);
  const std::string between = GENERATE("huggingface", "gxp");
  const NamedTensors out =
      converted(converted(read, between, dir / "between"), "huggingface", dir / "out");
  CHECK(digests(out) == digests(model));
  CHECK(config_of(dir / "out")["model_type"] == "llama");
  for (const char* format : {"gguf", "llmc"})
    CHECK_THAT(refused_conversion(out, format, dir), Contains(more));
  model.tensors.back().info.name = "model.layers.0.self_attn.rotary_emb.inv_freq";
  CHECK(converted(model, "huggingface", dir / "out").tensors.size() == model.tensors.size() - 1);
}

TEST_CASE("quantized weights keep their scales and their config.json", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string path = changed_model(dir, kTinyLlama, [](json& config) {
    config["quantization_config"] = {{"quant_method", "compressed-tensors"}};
  });
  const NamedTensors model = read_checkpoint(path);
  CHECK_FALSE(find_value(model.config, "model.layers"));
  CHECK(digests(converted(model, "huggingface", dir / "out")) == digests(model));
  CHECK(config_of(dir / "out")["quantization_config"]["quant_method"] == "compressed-tensors");
}

TEST_CASE("a stored head that differs from the tied table goes into no other format", "[ckpt]") {
  const TemporaryDirectory dir;
  NamedTensors model = read_checkpoint(kForeignModels + "hf_llama_tied_gqa");
  const NamedTensor table = *find_tensor(model, "model.embed_tokens.weight");
  model.tensors.push_back(counting_tensor("lm_head.weight", table.info.shape));
  CHECK_THAT(refused_conversion(model, "gguf", dir),
             Contains("lm_head.weight is stored and differs"));
  model.tensors.back() = table;
  model.tensors.back().info.name = "lm_head.weight";
  CHECK(converted(model, "gguf", dir / "out.gguf").tensors.size() == model.tensors.size() - 1);
}

TEST_CASE("a folder of steps means the newest, and one of other checkpoints is refused", "[ckpt]") {
  const TemporaryDirectory dir;
  for (const char* step : {"checkpoint-9", "checkpoint-10", "checkpoint-1000"})
    fs::copy(kForeignModels + "hf_qwen2", dir / step, fs::copy_options::recursive);
  fs::create_directory(dir / "logs");
  CHECK(checkpoint_at(dir.path()) == dir / "checkpoint-1000");
  CHECK(checkpoint_at(dir / "checkpoint-9") == dir / "checkpoint-9");
  CHECK(checkpoint_at(dir / "logs") == dir / "logs");
  CHECK(digests(read_checkpoint(dir.path())) == digests(read_checkpoint(dir / "checkpoint-9")));
  const std::string other = GENERATE("best", "checkpoint-01000", "step-2000");
  fs::copy(kForeignModels + "hf_qwen2", dir / other, fs::copy_options::recursive);
  const auto error = error_of([&] { read_checkpoint(dir.path()); });
  CHECK(error.kind == ErrorKind::kCorrupt);
  CHECK_THAT(error.message, Contains("4 checkpoints: ") &&
                                Contains("checkpoint-9, checkpoint-10, checkpoint-") &&
                                Contains(std::string("such as ") + dir.path() + "/"));
}

}  // namespace gxp
