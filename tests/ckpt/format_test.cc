#include "lib/ckpt/format.h"

#include <nlohmann/json.hpp>

#include "lib/ckpt/native/checkpoint.h"
#include "lib/config/strategy.h"
#include "tests/catch.h"
#include "tests/ckpt/samples.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

const std::string kCkptFixtures = GXP_TEST_DATA "/ckpt/";

NamedTensors convert(const std::string& from, const std::string& to, const std::string& format,
                     const WriteOptions& options = {}) {
  write_checkpoint(read_checkpoint(from), find_format(format), to, options);
  return read_checkpoint(to);
}

// The GPT-2 fixture with `change` made to its names, and the config.json next to it.
void write_gpt2(const std::string& directory, const std::function<void(NamedTensors&)>& change) {
  NamedTensors tensors = read_checkpoint(kCkptFixtures + "hf_gpt2");
  change(tensors);
  write_checkpoint(tensors, find_format("safetensors"), directory, {});
  fs::copy(kCkptFixtures + "hf_gpt2/config.json", directory);
}

// What a format that keeps weights only leaves.
NamedTensors weights_only(NamedTensors tensors) {
  std::erase_if(tensors.tensors, [](const auto& each) { return each.info.role != Role::kWeight; });
  return tensors;
}

// How the format refuses the model; "" in `message` if it takes it.
Caught refusal(const NamedTensors& model, const std::string& format) {
  const auto check_fits = find_format(format).check_fits;
  return error_of([&] {
    if (check_fits != nullptr) check_fits(model);
  });
}

}  // namespace

TEST_CASE("a model survives every chain of two conversions bit by bit", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string model = GENERATE("hf_gpt2", "hf_llama_tied_gqa");
  const std::string first = GENERATE(from_range(format_names()));
  const std::string second = GENERATE(from_range(format_names()));
  const uint64_t shard_bytes = GENERATE(uint64_t{20000}, uint64_t{5'000'000'000});
  CAPTURE(model, first, second, shard_bytes);
  const auto original = read_checkpoint(kCkptFixtures + model);
  for (const auto& format : {first, second}) {
    if (refusal(original, format).kind) return;  // the next test's
  }
  convert(kCkptFixtures + model, dir / "one", first, {shard_bytes});
  const auto result = convert(dir / "one", dir / "two", second, {shard_bytes});
  CHECK(result.format == second);
  CHECK(digests(result) == digests(original));
  for (const auto& [key, value] : original.config) CHECK(find_value(result.config, key) == value);
}

TEST_CASE("what any checkpoint holds survives every format that takes it, bit by bit", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string source = GENERATE(
      "dcp_fsdp2", "dcp_hf_sharded", "ds_zero1_fp32", "ds_zero2_bf16_paramalign", "ds_zero3_bf16",
      "ds_zero3_bf16_universal", "folders/trainer", "gguf/tiny.gguf", "gxp_v1", "hf_gpt_neox",
      "hf_qwen2", "hf_llama_untied_bf16_sharded", "llmc_bin/gpt2_bf16.bin", "safetensors_single",
      "torch_pt/new_dtypes.pt", "torch_pt/train_ckpt.pt");
  const std::string format = GENERATE(from_range(format_names()));
  CAPTURE(source, format);
  const NamedTensors original = read_checkpoint(kCkptFixtures + source);
  const Caught caught = error_of(
      [&] { write_checkpoint(original, find_format(format), dir / "out", {.shards = 1}); });
  if (caught.kind) {
    CHECK(caught.kind == ErrorKind::kConfig);  // a type, a name or a model that it has no place for
    CHECK(format != "gxp");
    return;
  }
  const bool keeps_all = find_format(format).keeps_optimizer_state;
  const auto expected = digests(keeps_all ? original : weights_only(original));
  CHECK(digests(read_checkpoint(dir / "out")) == expected);
  CHECK(digests(convert(dir / "out", dir / "back", "gxp")) == expected);
}

TEST_CASE("a format that cannot hold a model says so before it writes", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string model = GENERATE("hf_gpt2", "hf_llama_tied_gqa", "safetensors_single");
  const std::string format = GENERATE(from_range(format_names()));
  CAPTURE(model, format);
  const auto [kind, text] = refusal(read_checkpoint(kCkptFixtures + model), format);
  if (!kind) return;  // the test before is the one of what is taken
  CHECK(kind == ErrorKind::kConfig);
  const Caught caught = error_of([&] { convert(kCkptFixtures + model, dir / "out", format); });
  CHECK(caught.kind == ErrorKind::kConfig);
  CHECK(caught.message == text);
  CHECK(list(dir.path()).empty());
}

TEST_CASE("the formats that are said to be always one file are just those", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string format = GENERATE(from_range(format_names()));
  CAPTURE(format);
  if (format == "peft") return;  // which holds no model
  convert(kCkptFixtures + "hf_gpt2", dir / "out", format);
  const std::vector<std::string> names = file_format_names();
  CHECK(fs::is_regular_file(dir / "out") == (std::ranges::count(names, format) == 1));
}

TEST_CASE("the reader of a format of one file is fuzzed", "[ckpt]") {
  for (const std::string& format : file_format_names()) {
    CAPTURE(format);
    CHECK(fs::is_directory(GXP_TEST_DATA "/../fuzz/corpus/" + format));
  }
}

TEST_CASE("all storage types survive gxp's format and back", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string source = kCkptFixtures + "safetensors_single/model.safetensors";
  const auto original = digests(read_checkpoint(source));
  const auto stored = convert(source, dir / "gxp", "gxp");
  CHECK(stored.step == 1001);
  CHECK(digests(stored) == original);
  CHECK(digests(convert(dir / "gxp", dir / "a.safetensors", "safetensors")) == original);
  CHECK(fs::is_regular_file(dir / "a.safetensors"));
  CHECK(list(dir.path()) == std::vector<std::string>{"a.safetensors", "gxp"});
}

TEST_CASE("gxp's format keeps optimizer state and what is known of the run", "[ckpt]") {
  const TemporaryDirectory dir;
  NamedTensors run{
      .tensors = {counting_tensor("a", {3}), counting_tensor("a", {3}, 5, Role::kAdamM),
                  counting_tensor("a", {3}, 9, Role::kAdamV)},
      .config = {{"model.heads", "3"}, {"optim.lr", "0.1"}},
      .state = {{"lr", "0.05"}},
      .step = 7,
      .samples_consumed = 99,
      .world_size = 4,
      .strategy = "zero3"};
  write_checkpoint(run, find_format("gxp"), dir / "run", {});
  const auto copy = convert(dir / "run", dir / "copy", "gxp");
  CHECK(digests(copy) == digests(run));
  CHECK(copy.config == run.config);
  CHECK(copy.state == run.state);
  CHECK(copy.samples_consumed == 99);
  CHECK(copy.world_size == 4);
  CHECK(stage_of(copy.strategy) == 3);
  const auto weights = convert(dir / "run", dir / "w.safetensors", "safetensors");
  CHECK(weights.tensors.size() == 1);
  CHECK(weights.step == 7);
}

TEST_CASE("moments of 8-bit codes are gxp's alone: other formats take no part of them for numbers",
          "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string format = GENERATE("pt", "dcp", "universal", "safetensors", "gxp");
  CAPTURE(format);
  NamedTensors run{.tensors = {counting_tensor("a", {3})}, .step = 7};
  for (const Role role : {Role::kAdamM, Role::kAdamV, Role::kAdamMScales, Role::kAdamVScales}) {
    run.tensors.push_back(counting_tensor("a", {1}, 5, role));
    if (role == Role::kAdamM || role == Role::kAdamV)
      run.tensors.back().info = {"a", role, StorageDType::kU8, {3}};
  }
  const std::string out = dir / "out" + (format == "safetensors" ? ".safetensors" : "");
  const auto write = [&] { write_checkpoint(run, find_format(format), out, {}); };
  if (format == "gxp" || format == "safetensors") {
    write();
    CHECK(read_checkpoint(out).tensors.size() == (format == "gxp" ? 5 : 1));
    return;
  }
  CHECK_THROWS_WITH(write(), Catch::Contains("cannot store int8 moments"));
  CHECK(list(dir.path()).empty());
}

TEST_CASE("a Hugging Face directory has the configuration that GPT2LMHeadModel reads", "[ckpt]") {
  const TemporaryDirectory dir;
  convert(kCkptFixtures + "hf_gpt2", dir / "out", "huggingface");
  CHECK(list(dir / "out") ==
        std::vector<std::string>{"config.json", "generation_config.json", "model.safetensors"});
  const auto written = nlohmann::json::parse(read_bytes(dir / "out/config.json"));
  const auto original = nlohmann::json::parse(read_bytes(kCkptFixtures + "hf_gpt2/config.json"));
  for (const char* key :
       {"model_type", "architectures", "n_embd", "n_layer", "n_head", "n_positions", "vocab_size",
        "layer_norm_epsilon", "activation_function", "tie_word_embeddings", "dtype"}) {
    CAPTURE(key);
    CHECK(written[key] == original[key]);
  }
}

TEST_CASE("a Hugging Face directory has the configuration that LlamaForCausalLM reads", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto written_config =
      convert(kCkptFixtures + "hf_llama_tied_gqa", dir / "out", "huggingface").config;
  CHECK(find_value(written_config, "model.kv_heads") == "1");
  CHECK(find_value(written_config, "model.tied_head") == "true");
  CHECK(find_value(written_config, "model.rope_theta") == "10000.0");
  const auto written = nlohmann::json::parse(read_bytes(dir / "out/config.json"));
  const auto original =
      nlohmann::json::parse(read_bytes(kCkptFixtures + "hf_llama_tied_gqa/config.json"));
  for (const char* key :
       {"model_type", "architectures", "hidden_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "head_dim", "intermediate_size", "max_position_embeddings",
        "vocab_size", "rms_norm_eps", "rope_parameters", "hidden_act", "attention_bias", "mlp_bias",
        "tie_word_embeddings", "dtype"}) {
    CAPTURE(key);
    CHECK(written[key] == original[key]);
  }
}

TEST_CASE("the sizes that a Llama's settings leave out are written out", "[ckpt]") {
  const TemporaryDirectory dir;
  NamedTensors model = read_checkpoint(kCkptFixtures + "hf_llama_tied_gqa");
  std::erase_if(model.config, [](const auto& pair) { return pair.first == "model.head_size"; });
  model.config.emplace_back("model.head_size", "0");
  write_checkpoint(model, find_format("huggingface"), dir / "out", {});
  CHECK(nlohmann::json::parse(read_bytes(dir / "out/config.json"))["head_dim"] == 8);
  for (const char* key : {"model.heads", "model.hidden", "model.rope_theta"}) {
    NamedTensors changed = model;
    for (auto& [name, value] : changed.config)
      if (name == key) value = name == "model.rope_theta" ? "x" : "0";
    CHECK(error_of([&] {
            write_checkpoint(changed, find_format("huggingface"), dir / "x", {});
          }).kind == ErrorKind::kConfig);
  }
}

TEST_CASE("a Llama's config.json that gxp cannot compute yields tensors only", "[ckpt]") {
  const TemporaryDirectory dir;
  convert(kCkptFixtures + "hf_llama_tied_gqa", dir / "m", "huggingface");
  const auto config = nlohmann::json::parse(read_bytes(dir / "m/config.json"));
  const std::vector<std::pair<const char*, nlohmann::json>> changes = {
      {"model_type", "mistral"},     {"hidden_act", "selu"},
      {"attention_bias", "yes"},     {"mlp_bias", 1},
      {"num_key_value_heads", 0},    {"head_dim", "8"},
      {"rms_norm_eps", "x"},         {"rope_scaling", {{"rope_type", "llama3"}}},
      {"tie_word_embeddings", 1},    {"rope_parameters", {{"rope_type", "yarn"}}},
      {"intermediate_size", nullptr}};
  for (const auto& [key, value] : changes) {
    CAPTURE(key);
    auto changed = config;
    changed[key] = value;
    write_bytes(dir / "m/config.json", changed.dump());
    CHECK(read_checkpoint(dir / "m").config.empty());
  }
}

TEST_CASE("a Llama's config.json as transformers 4 writes it is understood", "[ckpt]") {
  const TemporaryDirectory dir;
  convert(kCkptFixtures + "hf_llama_tied_gqa", dir / "m", "huggingface");
  auto config = nlohmann::json::parse(read_bytes(dir / "m/config.json"));
  for (const char* key : {"rope_parameters", "num_key_value_heads", "head_dim"}) config.erase(key);
  config["rope_theta"] = 500000.0;
  write_bytes(dir / "m/config.json", config.dump());
  const auto settings = read_checkpoint(dir / "m").config;
  CHECK(find_value(settings, "model.rope_theta") == "500000.0");
  CHECK(find_value(settings, "model.kv_heads") == "3");  // as many as heads
}

TEST_CASE("names without a prefix, mask buffers and a stored tied head are understood", "[ckpt]") {
  const TemporaryDirectory dir;
  write_gpt2(dir / "old", [](NamedTensors& tensors) {
    NamedTensor head = *find_tensor(tensors, "transformer.wte.weight");
    head.info.name = "lm_head.weight";
    for (NamedTensor& tensor : tensors.tensors) tensor.info.name.erase(0, strlen("transformer."));
    tensors.tensors.push_back(head);
    tensors.tensors.push_back(counting_tensor("h.0.attn.bias", {1, 1, 32, 32}));
    tensors.tensors.push_back(counting_tensor("h.0.attn.masked_bias", {}));
  });
  const auto original = digests(read_checkpoint(kCkptFixtures + "hf_gpt2"));
  CHECK(digests(read_weights(dir / "old")) == original);
  CHECK(read_checkpoint(dir / "old").tensors.size() == original.size() + 3);
  CHECK(digests(convert(dir / "old", dir / "gxp", "gxp")) == original);
  CHECK(digests(convert(dir / "old", dir / "new", "huggingface")) == original);
}

TEST_CASE("a stored head that differs from the table it is tied to is refused", "[ckpt]") {
  const TemporaryDirectory dir;
  write_gpt2(dir / "untied", [](NamedTensors& tensors) {
    tensors.tensors.push_back(counting_tensor("lm_head.weight", {67, 24}));
  });
  const NamedTensors read = read_weights(dir / "untied");
  const auto [kind, text] =
      error_of([&] { write_checkpoint(read, find_format("huggingface"), dir / "x", {}); });
  CHECK(kind == ErrorKind::kConfig);
  CHECK_THAT(text, Catch::Matchers::Contains("lm_head.weight is stored and differs"));
}

TEST_CASE("a missing or misshapen tensor is named", "[ckpt]") {
  const TemporaryDirectory dir;
  write_gpt2(dir / "short", [](NamedTensors& tensors) { tensors.tensors.pop_back(); });
  write_gpt2(dir / "odd", [](NamedTensors& tensors) {
    for (NamedTensor& tensor : tensors.tensors) {
      if (tensor.info.name == "transformer.wpe.weight") tensor.info.shape = {24, 32};
    }
  });
  CHECK_THAT(error_of([&] { convert(dir / "short", dir / "x", "huggingface"); }).message,
             Catch::Matchers::Contains("is missing"));
  CHECK_THAT(error_of([&] { convert(dir / "odd", dir / "x", "huggingface"); }).message,
             Catch::Matchers::Contains("'transformer.wpe.weight' has the shape (24, 32)"));
  CHECK_FALSE(fs::exists(dir / "x"));
}

TEST_CASE("weights alone do not make a Hugging Face directory", "[ckpt]") {
  const TemporaryDirectory dir;
  fs::copy(kCkptFixtures + "hf_gpt2/model.safetensors", dir / "bare.safetensors");
  const auto [kind, text] =
      error_of([&] { convert(dir / "bare.safetensors", dir / "x", "huggingface"); });
  CHECK(kind == ErrorKind::kConfig);
  CHECK_THAT(text, Catch::Matchers::Contains("does not record model."));
  CHECK(list(dir.path()) == std::vector<std::string>{"bare.safetensors"});
}

TEST_CASE("a config.json that gxp cannot compute yields tensors only", "[ckpt]") {
  const TemporaryDirectory dir;
  write_gpt2(dir / "m", [](NamedTensors&) {});
  auto config = nlohmann::json::parse(read_bytes(dir / "m/config.json"));
  const std::vector<std::pair<const char*, nlohmann::json>> changes = {
      {"model_type", "gpt3"}, {"activation_function", "selu"},
      {"n_inner", -7},        {"tie_word_embeddings", 1},
      {"n_head", -1},         {"n_embd", "24"},
      {"n_layer", 1e300},     {"layer_norm_epsilon", "x"},
      {"vocab_size", nullptr}};
  for (const auto& [key, value] : changes) {
    CAPTURE(key);
    auto changed = config;
    changed[key] = value;
    write_bytes(dir / "m/config.json", changed.dump());
    CHECK(read_checkpoint(dir / "m").config.empty());
  }
  write_bytes(dir / "m/config.json", "[]");
  CHECK(error_of([&] { read_checkpoint(dir / "m"); }).kind == ErrorKind::kCorrupt);
}

TEST_CASE("an existing path is replaced only by --force, and only if it is a checkpoint",
          "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string source = kCkptFixtures + "hf_gpt2";
  convert(source, dir / "out", "gxp");
  CHECK(error_of([&] { convert(source, dir / "out", "gxp"); }).kind == ErrorKind::kUsage);
  CHECK(convert(source, dir / "out/", "huggingface", {.replace = true}).format == "huggingface");
  fs::create_directory(dir / "home");
  write_bytes(dir / "home/letter", "dear");
  CHECK(error_of([&] { convert(source, dir / "home", "gxp", {.replace = true}); }).kind ==
        ErrorKind::kUsage);
  CHECK(read_bytes(dir / "home/letter") == "dear");
  CHECK(list(dir.path()) == std::vector<std::string>{"home", "out"});
}

TEST_CASE("what is no checkpoint is said to be none", "[ckpt]") {
  const TemporaryDirectory dir;
  write_bytes(dir / "text", "hello, this is no checkpoint");
  CHECK(error_of([&] { read_checkpoint(dir / "text"); }).kind == ErrorKind::kCorrupt);
  CHECK(error_of([&] { read_checkpoint(dir / "absent"); }).kind == ErrorKind::kIo);
  CHECK(error_of([&] { read_checkpoint(dir.path()); }).kind == ErrorKind::kCorrupt);
  CHECK_THAT(
      error_of([] { find_format("safetensor"); }).message,
      Catch::Matchers::Contains("--to 'safetensor' is unknown; did you mean 'safetensors'?"));
}

TEST_CASE("of a directory that is no checkpoint, the files with tensors are named", "[ckpt]") {
  const TemporaryDirectory dir;
  for (const char* name : {"model-00002-of-00002.safetensors", "model-00001-of-00002.safetensors"})
    write_bytes(dir / name, "");
  CHECK(error_of([&] {
          read_checkpoint(dir / "");
        }).says("it holds model-00001-of-00002.safetensors and 1 more: name one file, or add"));
}

}  // namespace gxp
