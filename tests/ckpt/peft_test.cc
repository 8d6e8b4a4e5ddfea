// Adapters in PEFT's directories, and weights as those of a given model.
#include "lib/ckpt/peft/peft.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/ckpt/format.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/huggingface.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

const std::string kAdapters = std::string(GXP_TEST_DATA) + "/models/";

TEST_CASE("an adapter survives being written, to the byte of each tensor", "[ckpt]") {
  const std::string name = GENERATE("gpt2-lora-qkv", "llama-lora-all", "qwen3-lora-rs");
  const TemporaryDirectory directory;
  const std::string path = directory / "adapter";
  const NamedTensors adapter = read_checkpoint(kAdapters + name);
  CHECK(adapter.format == "peft");
  write_checkpoint(adapter, find_format("peft"), path, {});
  const NamedTensors again = read_checkpoint(path);
  CHECK(again.config == adapter.config);
  REQUIRE(again.tensors.size() == adapter.tensors.size());
  for (const NamedTensor& tensor : adapter.tensors) {
    const NamedTensor* written = find_tensor(again, tensor.info.name);
    REQUIRE(written != nullptr);
    CHECK(are_equal(*written, tensor));
  }
}

TEST_CASE("an adapter of another kind is refused by its key", "[ckpt]") {
  const auto [key, value] = GENERATE(table<std::string, nlohmann::json>({
      {"peft_type", "IA3"},
      {"use_dora", true},
      {"bias", "all"},
      {"rank_pattern", {{"q_proj", 8}}},
      {"modules_to_save", {"lm_head"}},
      {"layers_to_transform", {0}},
      {"target_modules", ".*proj"},
      {"init_lora_weights", "pissa_niter_4"},
  }));
  CAPTURE(key);
  const TemporaryDirectory directory;
  const std::string path = directory / "adapter";
  std::filesystem::copy(kAdapters + "qwen3-lora-qv", path);
  nlohmann::json config = nlohmann::json::parse(std::ifstream(path + "/adapter_config.json"));
  config[key] = value;
  std::filesystem::remove(path + "/adapter_config.json");
  std::ofstream(path + "/adapter_config.json") << config;
  const Caught caught = error_of([&] { read_checkpoint(path); });
  CHECK(caught.kind == ErrorKind::kConfig);
  CHECK(caught.says(key));
}

TEST_CASE("what a checkpoint says of its adapters is not replaced by a default", "[ckpt]") {
  NamedTensors adapter = read_checkpoint(kAdapters + "qwen3-lora-qv");
  adapter.metadata.clear();
  const TemporaryDirectory directory;
  const auto write = [&](const std::string& alpha) {
    NamedTensors changed = adapter;
    for (auto& [key, value] : changed.config)
      if (key == "lora.alpha") value = alpha;
    write_checkpoint(changed, find_format("peft"), directory / "adapter", {.replace = true});
  };
  write("32.0");
  CHECK(find_value(read_checkpoint(directory / "adapter").config, "lora.alpha") == "32.0");
  CHECK(error_of([&] { write("-1.0"); }).says("lora.alpha must be positive"));
}

TEST_CASE("an adapter of another model is not merged", "[ckpt]") {
  const Caught caught = error_of([&] {
    merge_adapters(read_checkpoint(kAdapters + "qwen3"),
                   read_checkpoint(kAdapters + "gpt2-lora-qkv"));
  });
  CHECK(caught.kind == ErrorKind::kConfig);
  CHECK(caught.says("c_attn"));
}

TEST_CASE("an adapter is merged only if all of its tensors are", "[ckpt]") {
  const NamedTensors model = read_checkpoint(kAdapters + "qwen3");
  const auto error_with = [&](const std::string& name, const std::string& table) {
    NamedTensors adapter = read_checkpoint(kAdapters + "qwen3-lora-qv");
    NamedTensor more = *find_tensor(model, table);
    more.info.name = name;
    adapter.tensors.push_back(std::move(more));
    return error_of([&] { merge_adapters(model, adapter); });
  };
  const std::string prefix = "base_model.model.";
  const std::string table = "model.embed_tokens.weight", norm = "model.norm.weight";
  const std::string query = "model.layers.0.self_attn.q_proj";
  CHECK(error_with(prefix + table, table).message.empty());
  CHECK(error_with(prefix + query + ".base_layer.weight", query + ".weight").message.empty());
  for (const std::string& name :
       {prefix + table, prefix + "lora_embedding_A", std::string("layers.0.lora_A.weight")})
    CHECK(error_with(name, norm).says("the adapter has " + name));
}

TEST_CASE("an adapter in a .bin is read as one in safetensors", "[ckpt]") {
  const TemporaryDirectory directory;
  const NamedTensors adapter = read_checkpoint(kAdapters + "qwen3-lora-qv");
  std::filesystem::copy(kAdapters + "qwen3-lora-qv", directory / "adapter");
  std::filesystem::remove(directory / "adapter/adapter_model.safetensors");
  write_checkpoint({.format = "pt", .tensors = adapter.tensors}, find_format("pt"),
                   directory / "adapter/adapter_model.bin", {});
  const NamedTensors old = read_checkpoint(directory / "adapter");
  CHECK(old.format == "peft");
  CHECK(old.config == adapter.config);
  REQUIRE(old.tensors.size() == adapter.tensors.size());
  for (const NamedTensor& tensor : adapter.tensors)
    CHECK(are_equal(*find_tensor(old, tensor.info.name), tensor));
}

TEST_CASE("a whole model is not written with adapters beside it", "[ckpt]") {
  const TemporaryDirectory directory;
  NamedTensors tensors = read_checkpoint(kAdapters + "qwen3");
  for (NamedTensor& adapter : read_checkpoint(kAdapters + "qwen3-lora-qv").tensors)
    tensors.tensors.push_back(std::move(adapter));
  const Caught caught = error_of(
      [&] { write_checkpoint(tensors, find_format("huggingface"), directory / "model", {}); });
  CHECK(caught.kind == ErrorKind::kConfig);
  CHECK(caught.says("--merge"));
}

TEST_CASE("wrapped tensors become the model whose directory is named", "[ckpt]") {
  const std::string name = GENERATE("qwen3", "gpt2-tied", "phi3");
  CAPTURE(name);
  const TemporaryDirectory directory;
  const NamedTensors model = read_checkpoint(kAdapters + name);
  NamedTensors wrapped{.format = "pt"};
  for (NamedTensor tensor : model.tensors) {
    std::string& text = tensor.info.name;
    text = "module._orig_mod." + text;
    if (const size_t at = text.find(".0."); at != std::string::npos)
      text.insert(at + 3, "_fsdp_wrapped_module.");
    wrapped.tensors.push_back(std::move(tensor));
  }
  const NamedTensors named = as_model_of(kAdapters + name, wrapped);
  write_checkpoint(named, find_format("huggingface"), directory / "model", {});
  const NamedTensors written = read_checkpoint(directory / "model");
  CHECK(written.config == model.config);
  for (const NamedTensor& tensor : model.tensors) {
    const NamedTensor* found = find_tensor(written, tensor.info.name);
    REQUIRE(found != nullptr);
    CHECK(are_equal(*found, tensor));
  }
  CHECK(error_of([&] { as_model_of(kAdapters + "llama-plain", wrapped); }).kind ==
        ErrorKind::kConfig);
}

}  // namespace
}  // namespace gxp
