// Folders that training programs write, as the real libraries have made them (tests/data/ckpt/folders/
// make.py): what is read of each is, to the byte, the model's state_dict() and the optimizer's state.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/huggingface.h"
#include "lib/ckpt/huggingface/parameter_order.h"
#include "lib/ckpt/torch/pt_file.h"
#include "lib/ckpt/trainer/optimizer_file.h"
#include "lib/tools/checkpoints/rename.h"
#include "tests/ckpt/conversions.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using nlohmann::json;

const std::string kFolders = GXP_TEST_DATA "/ckpt/folders/";
const std::string kMoved = GXP_TEST_DATA "/ckpt/moved/";

struct Folder {
  std::string path;
  std::string format;
  std::string config = "";  // of --config
  std::string map = "";
};

const std::vector<Folder> kAll = {
    {"trainer", "trainer"},
    {"trainer/checkpoint-10", "trainer"},
    {"accelerate", "trainer", "gpt2"},
    {"fsdp", "trainer"},
    {"fsdp-full", "trainer"},
    {"torchtitan", "dcp", "llama", "torchtitan"},
    {"meta-llama", "meta-llama", "llama", "meta-llama"},
    {"nanogpt/ckpt.pt", "pt", "", "nanogpt"},
    {"nanogpt/ckpt.pt", "pt", "gpt2", "nanogpt"},
};

// As `gxp convert-ckpt` reads it.
NamedTensors read_folder(const std::string& path, const Folder& folder) {
  NamedTensors tensors = read_checkpoint(path);
  const std::string config = folder.config.empty() ? "" : kFolders + folder.config;
  if (!folder.map.empty())
    rename_tensors(tensors, folder.map,
                   config.empty() ? tensors.config : model_settings_at(config));
  if (!config.empty()) tensors = as_model_of(config, std::move(tensors));
  name_optimizer(tensors);
  return tensors;
}

// By role and name; a tied head that is stored is left out.
std::map<std::string, std::string> hashes(const NamedTensors& tensors) {
  std::map<std::string, std::string> result;
  for (const NamedTensor& tensor : with_gpt2_names(tensors).tensors)
    result[fmt::format("{} {}", to_string(tensor.info.role), tensor.info.name)] =
        sha256_hex(tensor);
  return result;
}

json expected_of(const Folder& folder) {
  const std::string name = folder.path.substr(0, folder.path.find('/'));
  return json::parse(read_bytes(kFolders + name + "/expected.json"));
}

// A copy of a folder, to change.
std::string copied(const TemporaryDirectory& dir, const std::string& folder) {
  fs::copy(folder, dir / "copy", fs::copy_options::recursive);
  return dir / "copy";
}

void write_pieces(const TemporaryDirectory& dir, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    fs::create_directories(fs::path(dir / name).parent_path());
    write_bytes(dir / name, "x");
  }
}

}  // namespace

TEST_CASE("a training program's folder is its model and its optimizer, byte by byte", "[ckpt]") {
  const TemporaryDirectory dir;
  const Folder folder = GENERATE(from_range(kAll));
  CAPTURE(folder.path, folder.config);
  const NamedTensors read = read_folder(kFolders + folder.path, folder);
  const json expected = expected_of(folder);
  CHECK(read.format == folder.format);
  CHECK(lost_parts(read.optimizer).empty());
  CHECK(hashes(read) == expected["tensors"].get<std::map<std::string, std::string>>());
  if (!expected["step"].is_null()) CHECK(read.step == expected["step"].get<uint64_t>());
  CHECK(hashes(converted(read, "gxp", dir / "gxp")) == hashes(read));
  if (!find_value(read.config, "model.vocab_size")) return;
  const NamedTensors model = converted(read, "huggingface", dir / "huggingface");
  CHECK(hashes(model) == hashes(without_optimizer(read)));
}

TEST_CASE("the groups of a Trainer's optimizer have the names of their parameters", "[ckpt]") {
  const NamedTensors read = read_checkpoint(kFolders + "trainer");
  REQUIRE(read.optimizer.groups.size() == 2);
  for (const std::string& name : read.optimizer.groups[0].names)
    CHECK(find_tensor(read, name)->info.shape.size() == 2);
  CHECK(read.optimizer.groups[1].names ==
        std::vector<std::string>{"model.layers.0.input_layernorm.weight",
                                 "model.layers.0.post_attention_layernorm.weight",
                                 "model.layers.1.input_layernorm.weight",
                                 "model.layers.1.post_attention_layernorm.weight",
                                 "model.norm.weight"});
  CHECK(find_value(read.config, "optim.weight_decay") == "0.1");
  CHECK(find_value(read.config, "model.heads") == "2");
}

TEST_CASE("nanoGPT's model without biases is a GPT-2 whose biases are 0", "[ckpt]") {
  const TemporaryDirectory dir;
  NamedTensors read = read_checkpoint(kFolders + "nanogpt/ckpt.pt");
  std::erase_if(read.tensors,
                [](const NamedTensor& tensor) { return tensor.info.name.ends_with(".bias"); });
  rename_tensors(read, "nanogpt");
  CHECK_THAT(refused_conversion(read, "gxp", dir), Contains("--drop-optimizer"));
  const NamedTensors model = converted(read, "huggingface", dir / "model");
  const auto expected =
      expected_of({"nanogpt", "pt"})["tensors"].get<std::map<std::string, std::string>>();
  for (const NamedTensor& tensor : model.tensors) {
    const std::string& name = tensor.info.name;
    const uint64_t columns = tensor.info.shape.back();
    const std::string zeros =
        sha256_hex({{name, Role::kWeight, StorageDType::kF32, {columns}},
                    [](uint64_t, Memory out) { std::memset(out.data, 0, out.bytes); }});
    CHECK(sha256_hex(tensor) == (name.ends_with(".bias") ? zeros : expected.at("weight " + name)));
  }
  CHECK(model.tensors.size() == 28);
}

TEST_CASE("parameters are in the order of transformers' classes", "[ckpt]") {
  const std::string models = GXP_TEST_DATA "/models/";
  size_t compared = 0;
  for (const auto& entry : fs::directory_iterator(models)) {
    const std::string config = entry.path() / "config.json";
    if (!fs::exists(config) || !describe_obstacle(read_bytes(config), config).empty()) continue;
    if (entry.path().filename() == "llama-tied-head-differs")
      continue;  // which transformers unties
    CAPTURE(entry.path());
    const auto expected =
        nlohmann::ordered_json::parse(read_bytes(entry.path() / "expected.json"))["tensors"];
    std::vector<std::string> names;
    for (const auto& [name, facts] : expected.items()) names.push_back(name);
    CHECK(parameter_order(model_of(read_model_config(read_bytes(config), config))) == names);
    ++compared;
  }
  CHECK(compared > 30);
}

TEST_CASE("an optimizer without names needs the model, or is dropped if asked", "[ckpt]") {
  const TemporaryDirectory dir;
  const NamedTensors read = read_checkpoint(kFolders + "accelerate");
  CHECK_THAT(refused_conversion(read, "gxp", dir),
             Contains("optimizer.bin") && Contains("--config DIR") && Contains("--drop-optimizer"));
  CHECK(digests(converted(read, "gxp", dir / "weights", {.drop_optimizer = true})) ==
        digests(read));
  const std::string path = copied(dir, kFolders + "trainer/checkpoint-10");
  fs::remove(path + "/optimizer.pt");
  SECTION("an optimizer of another model") {
    fs::copy(kFolders + "accelerate/optimizer.bin", path);
    CHECK_THAT(lost_parts(read_checkpoint(path).optimizer), Contains("cannot be matched"));
  }
  SECTION("a file that is no optimizer") {
    write_pt(read, path + "/optimizer.pt", {});
    CHECK_THAT(lost_parts(read_checkpoint(path).optimizer), Contains("optimizer.pt"));
  }
  SECTION("an optimizer of adapters") {
    fs::remove_all(path);
    fs::copy(GXP_TEST_DATA "/models/llama-lora-qv", path);
    fs::copy(kFolders + "accelerate/optimizer.bin", path);
    const NamedTensors adapters = read_checkpoint(path);
    CHECK_THAT(lost_parts(adapters.optimizer), Contains("numbers the parameters of adapters"));
    CHECK(digests(converted(adapters, "peft", dir / "peft")) == digests(adapters));
  }
  SECTION("no optimizer at all") {
    const NamedTensors weights = read_checkpoint(path);
    CHECK(lost_parts(weights.optimizer).empty());
    CHECK(weights.step == 10);
  }
}

TEST_CASE("DeepSpeed's files in a Trainer's folder are its fp32 weights and its optimizer",
          "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string stage = GENERATE("zero2", "zero3");
  const std::string path = copied(dir, kMoved + stage);
  const NamedTensors plain = read_checkpoint(kMoved + stage);
  json config = json::parse(read_bytes(kFolders + "gpt2/config.json"));
  config.update({{"vocab_size", 19}, {"n_positions", 8}, {"n_layer", 1}});
  write_bytes(path + "/config.json", config.dump());
  write_bytes(path + "/trainer_state.json", R"({"global_step": 10, "log": [NaN]})");
  write_bytes(path + "/tokenizer.json", "{}");
  const NamedTensors read = read_checkpoint(path);
  CHECK(read.format == "trainer");
  CHECK(hashes(read) == hashes(plain));
  CHECK(read.step == plain.step);
  CHECK(read.optimizer.groups == plain.optimizer.groups);
  const NamedTensors out = converted(read, "huggingface", dir / "out");
  CHECK(fs::exists(dir / "out/tokenizer.json"));
  CHECK(hashes(out) == hashes(without_optimizer(plain)));
}

TEST_CASE("what cannot be joined is refused by name, with the way out", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto [words, names] = GENERATE(table<std::string, std::vector<std::string>>({
      {"several models, such as model_1.safetensors",
       {"model.safetensors", "model_1.safetensors", "random_states_0.pkl"}},
      {"save with SHARDED_STATE_DICT", {"pytorch_model_fsdp_0_rank0.bin"}},
      {"several tensor-parallel ranks (consolidated.01.pth)",
       {"consolidated.00.pth", "consolidated.01.pth", "params.json"}},
      {"a checkpoint of Megatron-LM", {"mp_rank_00/model_optim_rng.pt"}},
      {"a checkpoint of Megatron-LM", {"mp_rank_01_002/model_optim_rng.pt"}},
      {"a checkpoint of Megatron-LM", {".metadata", "common.pt", "__0_0.distcp"}},
      {"Megatron Bridge", {"latest_checkpointed_iteration.txt", "iter_0000100/common.pt"}},
  }));
  CAPTURE(words);
  write_pieces(dir, names);
  const auto error = error_of([&] { read_checkpoint(dir.path()); });
  CHECK(error.kind == ErrorKind::kCorrupt);
  CHECK_THAT(error.message, Contains(words) && Contains(dir.path()));
}

TEST_CASE("settings of the source that the model of --config contradicts are an error", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string path = copied(dir, kFolders + "meta-llama");
  json params = json::parse(read_bytes(path + "/params.json"));
  const auto [key, value] = GENERATE(table<std::string, json>({{"n_heads", 1},
                                                               {"norm_eps", 0.5},
                                                               {"n_kv_heads", 2},
                                                               {"rope_theta", 5e5},
                                                               {"use_scaled_rope", true}}));
  params[key] = value;
  write_bytes(path + "/params.json", params.dump());
  const auto error = error_of([&] { read_folder(path, {"", "", "llama", "meta-llama"}); });
  CHECK(error.kind == ErrorKind::kConfig);
  CHECK_THAT(error.message, Contains("which is not that of this model"));
}

TEST_CASE("wrappers of modules are taken out of the names of a known model", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string wrapper =
      GENERATE("module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module.");
  const std::string sample = GXP_TEST_DATA "/models/qwen3/";
  const NamedTensors model = read_checkpoint(sample);
  NamedTensors wrapped = model;
  for (NamedTensor& tensor : wrapped.tensors) tensor.info.name.insert(0, wrapper);
  wrapped.metadata.clear();
  wrapped.config.clear();
  fs::create_directory(dir / "model");
  fs::copy(sample + "config.json", dir / "model");
  write_pt(wrapped, dir / "model/pytorch_model.bin", {});
  CHECK(digests(read_checkpoint(dir / "model")) == digests(model));
  write_pt(wrapped, dir / "model.pt", {});
  CHECK(digests(read_weights(dir / "model.pt")) == digests(model));
  CHECK(digests(as_model_of(sample, read_checkpoint(dir / "model.pt"))) == digests(model));
}

}  // namespace gxp
