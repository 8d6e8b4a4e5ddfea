// Hugging Face directories of models that gxp trains and of others: what must survive a conversion.
#include "lib/ckpt/huggingface/huggingface.h"

#include <nlohmann/json.hpp>

#include "lib/ckpt/huggingface/config_json.h"
#include "tests/catch.h"
#include "tests/ckpt/changed_model.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using nlohmann::json;

const std::string kModels = GXP_TEST_DATA "/ckpt/";

NamedTensors convert_to(const std::string& from, const std::string& to, const std::string& format) {
  write_checkpoint(read_checkpoint(from), find_format(format), to, {});
  return read_checkpoint(to);
}

}  // namespace

TEST_CASE("a config.json of any model survives other formats with all that it says", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string model = GENERATE("hf_gpt2", "hf_llama_tied_gqa", "hf_gpt_neox", "hf_qwen2");
  const std::string format = GENERATE("gxp", "huggingface", "safetensors");
  CAPTURE(model, format);
  const json original = config_of(kModels + model);
  convert_to(kModels + model, dir / "between", format);
  const NamedTensors back = convert_to(dir / "between", dir / "back", "huggingface");
  CHECK(digests(back) == digests(read_checkpoint(kModels + model)));
  const json written = config_of(dir / "back");
  for (const auto& [key, value] : original.items()) {
    CAPTURE(key);
    CHECK(written.value(key, json("absent")) == value);
  }
}

TEST_CASE("a config.json is written with the spellings of transformers 4 and 5", "[ckpt]") {
  const TemporaryDirectory dir;
  convert_to(kModels + "hf_gpt_neox", dir / "neox", "huggingface");
  const json neox = config_of(dir / "neox");
  CHECK(neox["rotary_pct"] == 0.25);
  CHECK(neox["rotary_emb_base"] == 10000.0);
  CHECK(neox["torch_dtype"] == "float32");
  const std::string old = changed_model(dir, "hf_qwen2", [](json& config) {
    config.erase("rope_parameters");
    config["rope_theta"] = 5e5;
    config["rope_scaling"] = {{"type", "yarn"}, {"factor", 4.0}};
    config.erase("dtype");
  });
  convert_to(old, dir / "qwen", "huggingface");
  const json qwen = config_of(dir / "qwen");
  CHECK(qwen["rope_parameters"]["rope_theta"] == 5e5);
  CHECK(qwen["rope_parameters"]["rope_type"] == "yarn");
  CHECK(qwen["rope_parameters"]["factor"] == 4.0);
  CHECK(qwen["dtype"] == "float32");
}

TEST_CASE("rotary settings of transformers 5 are told to transformers 4 too", "[ckpt]") {
  const json rope = {{"rope_type", "llama3"}, {"factor", 8.0}, {"rope_theta", 7.0}};
  const auto refreshed = [](const json& config) {
    return json::parse(refresh_model_config(config.dump(), std::nullopt));
  };
  const json config = refreshed({{"model_type", "any"}, {"rope_parameters", rope}});
  CHECK(config["rope_theta"] == 7.0);
  CHECK(config["rope_scaling"] == json{{"rope_type", "llama3"}, {"factor", 8.0}});
  const json layers = {{"full_attention", rope}};
  CHECK(refreshed({{"rope_parameters", layers}}) == json{{"rope_parameters", layers}});
  CHECK(refreshed(json::object()) == json::object());
}

TEST_CASE("a known model's settings that change are written over the old config.json", "[ckpt]") {
  const TemporaryDirectory dir;
  NamedTensors model = read_checkpoint(kModels + "hf_llama_tied_gqa");
  for (auto& [key, value] : model.config)
    if (key == "model.rope_theta") value = "500000.0";
  write_checkpoint(model, find_format("huggingface"), dir / "out", {});
  const json written = config_of(dir / "out");
  CHECK(written["rope_theta"] == 500000.0);
  CHECK(written["rope_parameters"]["rope_theta"] == 500000.0);
  CHECK(written["bos_token_id"] == config_of(kModels + "hf_llama_tied_gqa")["bos_token_id"]);
}

TEST_CASE("a head that is neither tied nor stored is refused", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto [model, value] = GENERATE(table<std::string, json>({{"hf_qwen2", false},
                                                                 {"hf_qwen2", nullptr},
                                                                 {"hf_llama_tied_gqa", false},
                                                                 {"hf_llama_tied_gqa", nullptr}}));
  const auto tie = [&, value = value](json& config) { config["tie_word_embeddings"] = value; };
  const std::string path = changed_model(dir, model, tie);
  const auto [kind, text] = error_of([&] { read_checkpoint(path); });
  CHECK(kind == ErrorKind::kCorrupt);
  CHECK_THAT(text, Contains("config.json: the head is not tied") && Contains("lm_head.weight"));
  // A class without a head has none.
  const std::string bare = changed_model(dir, model, [&](json& config) {
    tie(config);
    config["architectures"] = {"AnyModel"};
  });
  CHECK_FALSE(find_value(read_checkpoint(bare).config, "model.layers"));
}

TEST_CASE("a head with a wrapper before its name is one", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string prefix = GENERATE("_orig_mod.", "module.", "_forward_module.", "student.");
  const std::string path = dir / "wrapped";
  NamedTensors model = read_checkpoint(kModels + "hf_gpt_neox");
  for (NamedTensor& tensor : model.tensors) tensor.info.name.insert(0, prefix);
  write_checkpoint({.tensors = model.tensors}, find_format("safetensors"), path, {});
  fs::copy(kModels + "hf_gpt_neox/config.json", path);
  const NamedTensors read = read_checkpoint(path);
  const bool is_known = prefix != "student.";
  CHECK(find_value(read.config, "model.layers").has_value() == is_known);
  CHECK((find_tensor(read, "embed_out.weight") != nullptr) == is_known);
}

TEST_CASE("a stored head that is tied must be the token table", "[ckpt]") {
  const TemporaryDirectory dir;
  NamedTensors model = read_checkpoint(kModels + "hf_llama_tied_gqa");
  NamedTensor head = *find_tensor(model, "model.embed_tokens.weight");
  const auto shape = head.info.shape;
  head.info.name = "lm_head.weight";
  model.tensors.push_back(head);
  write_checkpoint(model, find_format("huggingface"), dir / "same", {});
  CHECK(find_tensor(read_checkpoint(dir / "same"), "lm_head.weight") == nullptr);
  model.tensors.back() = counting_tensor("lm_head.weight", shape);
  CHECK_THAT(
      error_of([&] { write_checkpoint(model, find_format("huggingface"), dir / "x", {}); }).message,
      Contains("lm_head.weight is stored and differs"));
}

TEST_CASE("the tokenizer's files go along to a Hugging Face directory", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string source = changed_model(dir, "hf_qwen2", [](json&) {});
  for (const char* name : {"tokenizer.json", "merges.txt", "chat_template.jinja", "README.md"})
    write_bytes(source + "/" + name, fmt::format("this is {}", name));
  convert_to(source, dir / "out", "huggingface");
  CHECK(list(dir / "out") == std::vector<std::string>{"chat_template.jinja", "config.json",
                                                      "generation_config.json", "merges.txt",
                                                      "model.safetensors", "tokenizer.json"});
  CHECK(read_bytes(dir / "out/merges.txt") == "this is merges.txt");
  CHECK(list(convert_to(source, dir / "gxp", "gxp").format == "gxp" ? dir / "gxp" : "").size() ==
        1);
  write_checkpoint(read_checkpoint(source), find_format("gxp"), dir / "out", {.replace = true});
  CHECK(read_checkpoint(dir / "out").format == "gxp");
}

TEST_CASE("other models that have names of GPT-2's keep their head", "[ckpt]") {
  const TemporaryDirectory dir;
  NamedTensors model{.tensors = {counting_tensor("transformer.wte.weight", {4, 2}),
                                 counting_tensor("lm_head.weight", {4, 2}, 100)}};
  model.metadata[kConfigText] = R"({"model_type": "gptj"})";
  write_checkpoint(model, find_format("gxp"), dir / "gxp", {});
  CHECK(digests(convert_to(dir / "gxp", dir / "out", "huggingface")) == digests(model));
  model.metadata[kConfigText] = "[]";
  CHECK(error_of([&] {
          write_checkpoint(model, find_format("huggingface"), dir / "x", {});
        }).kind == ErrorKind::kCorrupt);
}

TEST_CASE("a plan names the files that are written, with their sizes, and writes none", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string format = GENERATE("gxp", "huggingface", "safetensors");
  const std::string name = GENERATE("out", "out.safetensors");
  const WriteOptions options{.shards = GENERATE(size_t{0}, size_t{3})};
  CAPTURE(format, name, options.shards);
  const NamedTensors model = read_checkpoint(kModels + "hf_qwen2");
  const auto plan = plan_checkpoint(model, find_format(format), dir / name, options);
  CHECK(list(dir.path()).empty());
  write_checkpoint(model, find_format(format), dir / name, options);
  uint64_t tensors = 0;
  for (const PlannedFile& file : plan) {
    const bool single = fs::is_regular_file(dir / name);
    const std::string path = single ? dir / file.name : dir / name + "/" + file.name;
    CHECK(fs::file_size(path) == file.bytes.value_or(fs::file_size(path)));
    tensors += file.tensors;
  }
  CHECK(tensors == model.tensors.size());
  CHECK(error_of([&] { plan_checkpoint(model, find_format(format), dir / name, options); }).kind ==
        ErrorKind::kUsage);
}

TEST_CASE("shards are as many as asked for, each with its share of the bytes", "[ckpt]") {
  const TemporaryDirectory dir;
  const NamedTensors model = read_checkpoint(kModels + "hf_qwen2");
  const size_t shards = GENERATE(2, 3, 7);
  write_checkpoint(model, find_format("huggingface"), dir / "out", {.shards = shards});
  CHECK(digests(read_checkpoint(dir / "out")) == digests(model));
  CHECK(list(dir / "out").size() == shards + 3);  // the index, config.json, generation_config.json
  CHECK_THAT(error_of([&] {
               write_checkpoint(model, find_format("safetensors"), dir / "x", {.shards = 999});
             }).message,
             Contains("cannot be split into 999 files"));
}

}  // namespace gxp
