// Checkpoints of other programs of many kinds, a row each: what is in them is kept through a
// conversion, or the conversion is refused and says what stands against it.
#include <nlohmann/json.hpp>

#include "lib/ckpt/format.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/safetensors/safetensors.h"
#include "lib/ckpt/torch/pt_file.h"
#include "lib/ckpt/torch/torch_archive.h"
#include "lib/tools/checkpoints/rename.h"
#include "tests/catch.h"
#include "tests/ckpt/changed_model.h"
#include "tests/ckpt/torch_samples.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using nlohmann::json;

const std::string kData = GXP_TEST_DATA "/ckpt/";
const std::string kTinyLlama =
    "hf_llama_untied_bf16_sharded";  // as many heads of keys as of queries

NamedTensors converted(const NamedTensors& source, const std::string& format,
                       const std::string& path, const WriteOptions& options = {}) {
  fs::remove_all(path);
  write_checkpoint(source, find_format(format), path, options);
  return read_checkpoint(path);
}

std::string refusal(const NamedTensors& source, const std::string& format,
                    const TemporaryDirectory& dir) {
  const auto error =
      error_of([&] { write_checkpoint(source, find_format(format), dir / "refused", {}); });
  CHECK(error.kind == ErrorKind::kConfig);
  CHECK_FALSE(fs::exists(dir / "refused"));
  return error.message;
}

// What torch.save might have made, in the making.
class TorchSample {
 public:
  using Shape = std::vector<uint64_t>;
  PickleWriter pickle;

  void tensor(const Shape& shape, float first) {
    storages_.push_back(counting_tensor("s", shape, first));
    put_tensor(pickle, storages_.back().info, fmt::format("{}", storages_.size() - 1));
  }
  void begin(const char* key) {
    pickle.text(key);
    pickle.begin_dict();
  }
  void number(const char* key, int64_t value) {
    pickle.text(key);
    pickle.integer(value);
  }
  // Weights "w0", "w1", ... under `key`.
  void weights(const char* key, const std::vector<Shape>& shapes) {
    begin(key);
    for (size_t i = 0; i < shapes.size(); ++i) {
      pickle.text(fmt::format("w{}", i));
      tensor(shapes[i], float(i));
    }
    pickle.end_dict();
  }
  // Adam's state of so many parameters, each after its own number of steps; "" of no more.
  void states(const std::vector<Shape>& shapes, const std::vector<float>& steps,
              const char* more = "") {
    begin("state");
    for (size_t i = 0; i < shapes.size(); ++i) {
      pickle.integer(int64_t(i));
      pickle.begin_dict();
      pickle.text("step");
      tensor({}, steps[i]);
      for (const char* kept : {"exp_avg", "exp_avg_sq", more}) {
        if (*kept == '\0') continue;
        pickle.text(kept);
        tensor(shapes[i], float(10 * i));
      }
      pickle.end_dict();
    }
    pickle.end_dict();
  }
  // A group of the parameters first to last.
  void group(double rate, double decay, int64_t first, int64_t last, bool has_names = true) {
    pickle.begin_dict();
    const auto real = [&](const char* key, double value) {
      pickle.text(key);
      pickle.real(value);
    };
    real("lr", rate);
    real("initial_lr", 2 * rate);
    pickle.text("betas");
    pickle.begin_tuple();
    pickle.real(0.9);
    pickle.real(0.95);
    pickle.end_tuple();
    real("eps", 1e-8);
    real("weight_decay", decay);
    pickle.text("foreach");
    pickle.none();
    pickle.text("params");
    pickle.begin_list();
    for (int64_t i = first; i <= last; ++i) pickle.integer(i);
    pickle.end_list();
    if (has_names) {
      pickle.text("param_names");
      pickle.begin_list();
      for (int64_t i = first; i <= last; ++i) pickle.text(fmt::format("w{}", i));
      pickle.end_list();
    }
    pickle.end_dict();
  }
  std::string write(const TemporaryDirectory& dir) {
    return write_archive(dir, pickle.finish(), storages_);
  }

 private:
  std::vector<NamedTensor> storages_;
};

const std::vector<TorchSample::Shape> kThree = {{4, 2}, {4, 2}, {4}};

// {"net": ..., "opt": ..., "global_step": 24} of three weights, of which the first, a matrix, does
// not decay.
std::string write_run(const TemporaryDirectory& dir, const std::vector<float>& steps) {
  TorchSample sample;
  sample.pickle.begin_dict();
  sample.weights("net", kThree);
  sample.begin("opt");
  sample.states(kThree, steps);
  sample.pickle.text("param_groups");
  sample.pickle.begin_list();
  sample.group(2e-5, 0, 0, 0);
  sample.group(1e-3, 0.1, 1, 2);
  sample.pickle.end_list();
  sample.pickle.end_dict();
  sample.number("global_step", 24);
  sample.pickle.end_dict();
  return sample.write(dir);
}

const std::string kRunGroups =
    "[{'lr': 2e-05, 'initial_lr': 4e-05, 'betas': (0.9, 0.95), 'eps': 1e-08, 'weight_decay': 0, "
    "'foreach': None, 'params': [0], 'param_names': ['w0']}, {'lr': 0.001, 'initial_lr': 0.002, "
    "'betas': (0.9, 0.95), 'eps': 1e-08, 'weight_decay': 0.1, 'foreach': None, 'params': [1, 2], "
    "'param_names': ['w1', 'w2']}]";

// "param_groups" of a .pt, and the steps of its states in their order.
std::string groups_in(const std::string& path) {
  const auto archive = TorchArchive::open(FileRange::open(path));
  return render(member(member(archive.root(), "optimizer", "x"), "param_groups", "x"));
}

std::vector<float> steps_in(const std::string& path) {
  const auto archive = TorchArchive::open(FileRange::open(path));
  const PickleValue state = member(member(archive.root(), "optimizer", "x"), "state", "x");
  std::vector<float> steps;
  for (size_t i = 0; i < state.size(); ++i) {
    float step = 0;
    archive.tensor(member(state.value(i), "step", "x"), "step")
        .read(0, {reinterpret_cast<std::byte*>(&step), sizeof(step)});
    steps.push_back(step);
  }
  return steps;
}

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

TEST_CASE("rotary positions of the type default are not scaled, and others are", "[ckpt]") {
  const TemporaryDirectory dir;
  const auto [change, theta] = GENERATE(table<std::string, std::string>({
      {R"({"rope_parameters": null, "rope_scaling": {"rope_type": "default"}})", "10000.0"},
      {R"({"rope_parameters": null, "rope_scaling": {"type": "default"}})", "10000.0"},
      {R"({"rope_parameters": null, "rope_scaling": {}, "rope_theta": 7.0})", "7.0"},
      {R"({"rope_parameters": {"rope_type": "default"}, "rope_theta": 7.0})", "7.0"},
      {R"({"rope_parameters": {"rope_type": "default", "rope_theta": 7.0}})", "7.0"},
      {R"({"rope_parameters": {"rope_type": "linear", "rope_theta": 7.0, "factor": 2.0}})", ""},
      {R"({"rope_parameters": {"type": "yarn", "rope_theta": 7.0}})", ""},
      {R"({"rope_scaling": {"type": "linear", "factor": 2.0}})", ""},
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
  const NamedTensors model = read_checkpoint(kData + kTinyLlama);
  const std::string path = dir / "model";
  fs::create_directory(path);
  fs::copy(kData + kTinyLlama + "/config.json", path);
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
  NamedTensors model = read_checkpoint(kData + kTinyLlama);
  model.tensors.push_back(counting_tensor(more, {3}));
  CHECK_THAT(refusal(model, "huggingface", dir), Contains(more));
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
  for (const char* format : {"gguf", "llmc"}) CHECK_THAT(refusal(out, format, dir), Contains(more));
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
  NamedTensors model = read_checkpoint(kData + "hf_llama_tied_gqa");
  const NamedTensor table = *find_tensor(model, "model.embed_tokens.weight");
  model.tensors.push_back(counting_tensor("lm_head.weight", table.info.shape));
  CHECK_THAT(refusal(model, "gguf", dir), Contains("lm_head.weight is not"));
  model.tensors.back() = table;
  model.tensors.back().info.name = "lm_head.weight";
  CHECK(converted(model, "gguf", dir / "out.gguf").tensors.size() == model.tensors.size() - 1);
}

TEST_CASE("the optimizer's groups, order and steps are written as they were read", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::vector<float> steps = GENERATE(
      std::vector<float>{3, 3, 3}, std::vector<float>{3, 3, 2}, std::vector<float>{24, 24, 24});
  const std::string between = GENERATE("", "gxp", "dcp", "pt", "universal");
  CAPTURE(steps, between);
  NamedTensors run = read_checkpoint(write_run(dir, steps));
  CHECK(run.step == 24);
  CHECK(find_tensor(run, "w2", Role::kAdamV) != nullptr);
  CHECK(run.tensors.size() == 9);
  const auto before = digests(run);
  if (!between.empty()) run = converted(run, between, dir / "between.pt");
  CHECK(digests(converted(run, "pt", dir / "out.pt")) == before);
  CHECK(steps_in(dir / "out.pt") == steps);
  CHECK(groups_in(dir / "out.pt") == kRunGroups);
  const auto archive = TorchArchive::open(FileRange::open(dir / "out.pt"));
  CHECK(member(archive.root(), "step", "x").integer() == 24);
}

TEST_CASE("renamed parameters keep their groups and steps", "[ckpt]") {
  const TemporaryDirectory dir;
  NamedTensors run = read_checkpoint(write_run(dir, {3, 3, 2}));
  write_bytes(dir / "map.toml", "[[rename]]\nfrom = \"w(.)\"\nto = \"x$1\"\n");
  rename_tensors(run, dir / "map.toml");
  converted(run, "pt", dir / "out.pt");
  CHECK_THAT(groups_in(dir / "out.pt"), Contains("['x1', 'x2']"));
  CHECK(steps_in(dir / "out.pt") == std::vector<float>{3, 3, 2});
}

TEST_CASE("what of an optimizer cannot be kept is dropped only if asked", "[ckpt]") {
  const TemporaryDirectory dir;
  using Put = std::function<void(TorchSample&)>;
  const auto groups = [](TorchSample& sample, bool has_names) {
    sample.pickle.text("param_groups");
    sample.pickle.begin_list();
    sample.group(1e-3, 0.1, 0, int64_t(kThree.size()) - 1, has_names);
    sample.pickle.end_list();
  };
  const auto optimizer = [&](TorchSample& sample, const char* key, const char* more) {
    sample.begin(key);
    sample.states(kThree, {3, 3, 3}, more);
    groups(sample, true);
    sample.pickle.end_dict();
  };
  const std::vector<std::pair<std::string, Put>> cases = {
      {"max_exp_avg_sq", [&](auto& sample) { optimizer(sample, "optimizer", "max_exp_avg_sq"); }},
      {"2 optimizers of one file (optimizer, optimizer_d)",
       [&](auto& sample) {
         optimizer(sample, "optimizer", "");
         optimizer(sample, "optimizer_d", "");
       }},
      {"the tensors beside the optimizer in 'optimizer'",
       [&](auto& sample) {
         sample.begin("optimizer");
         optimizer(sample, "optimizer", "");
         sample.weights("fp32_from_fp16_params", kThree);
         sample.pickle.end_dict();
       }},
      {"the parameters of its optimizer state",
       [&](auto& sample) {
         sample.begin("optimizer");
         sample.states({{9}, {4}, {2}}, {3, 3, 3});
         groups(sample, false);
         sample.pickle.end_dict();
       }},
      {"a step that is no whole number",
       [&](auto& sample) {
         sample.begin("optimizer");
         sample.states(kThree, {3, 3, 2.5});
         groups(sample, true);
         sample.pickle.end_dict();
       }},
  };
  for (const auto& [words, put] : cases) {
    CAPTURE(words);
    TorchSample sample;
    sample.pickle.begin_dict();
    sample.weights("model", kThree);
    put(sample);
    sample.number("step", 3);
    sample.pickle.end_dict();
    const NamedTensors run = read_checkpoint(sample.write(dir));
    for (const char* format : {"pt", "dcp", "gxp", "universal"})
      CHECK_THAT(refusal(run, format, dir), Contains(words) && Contains("--drop-optimizer"));
    CHECK(converted(run, "gxp", dir / "gxp", {.drop_optimizer = true}).tensors.size() == 3);
    CHECK(converted(run, "safetensors", dir / "out.safetensors").tensors.size() == 3);
  }
}

TEST_CASE("moments whose step is not known are written to no other program", "[ckpt]") {
  const TemporaryDirectory dir;
  NamedTensors run = training_run();
  run.step = std::nullopt;
  const std::string format = GENERATE("pt", "dcp", "universal");
  CHECK_THAT(refusal(run, format, dir), Contains("--step"));
  run.step = 7;
  CHECK(converted(run, format, dir / "out.pt").step == 7);
}

TEST_CASE("a file whose parts cannot be told apart is refused with its keys", "[ckpt]") {
  const TemporaryDirectory dir;
  TorchSample two;
  two.pickle.begin_dict();
  two.weights("generator", kThree);
  two.weights("ema", kThree);
  two.begin("optimizer");
  two.states(kThree, {1, 1, 1});
  two.pickle.end_dict();
  two.pickle.end_dict();
  CHECK_THAT(error_of([&, path = two.write(dir)] { read_pt(path); }).message,
             Contains("(keys: generator, ema, optimizer"));
  TorchSample alone;
  alone.pickle.begin_dict();
  alone.states(kThree, {1, 1, 1});
  alone.pickle.text("param_groups");
  alone.pickle.begin_list();
  alone.group(0.1, 0, 0, 2);
  alone.pickle.end_list();
  alone.pickle.end_dict();
  CHECK_THAT(error_of([&, path = alone.write(dir)] { read_pt(path); }).message,
             Contains("an optimizer alone"));
}

TEST_CASE("a module's extra state that is no tensor is left out", "[ckpt]") {
  const TemporaryDirectory dir;
  TorchSample sample;
  sample.pickle.begin_dict();
  sample.pickle.text("w");
  sample.tensor({2}, 0);
  sample.pickle.text("layer._extra_state");
  sample.pickle.global("_io", "BytesIO");
  sample.pickle.begin_tuple();
  sample.pickle.end_tuple();
  sample.pickle.reduce();
  sample.pickle.text("other._extra_state");
  sample.tensor({3}, 0);
  sample.pickle.end_dict();
  const NamedTensors read = read_pt(sample.write(dir));
  CHECK(read.tensors.size() == 2);
  CHECK(find_tensor(read, "other._extra_state") != nullptr);
}

TEST_CASE("what gxp does not read is told with what to do", "[ckpt]") {
  const TemporaryDirectory dir;
  TorchSample sample;
  PickleWriter& pickle = sample.pickle;
  pickle.begin_dict();
  pickle.text("w");
  pickle.global("torch._tensor", "_rebuild_from_type_v2");
  pickle.begin_tuple();
  pickle.global("torch._utils", "_rebuild_wrapper_subclass");
  pickle.global("torch.distributed.tensor", "DTensor");
  pickle.begin_tuple();
  pickle.end_tuple();
  pickle.begin_dict();
  pickle.end_dict();
  pickle.end_tuple();
  pickle.reduce();
  pickle.end_dict();
  CHECK_THAT(error_of([&, path = sample.write(dir)] { read_pt(path); }).message,
             Contains("a DTensor") && Contains("full_state_dict=True"));
  // A member of a TorchScript archive is compressed.
  std::string bytes = read_bytes(kTorchFixtures + "state_dict.pt");
  const size_t entry = bytes.find("PK\1\2");
  bytes[entry + 10] = 8;
  bytes.replace(entry + 46, 7, "a/code/");
  write_bytes(dir / "script.pt", bytes);
  CHECK_THAT(error_of([&] { read_pt(dir / "script.pt"); }).message, Contains("TorchScript"));
}

TEST_CASE("of a folder of steps each is named, and the newest is offered", "[ckpt]") {
  const TemporaryDirectory dir;
  for (const char* step : {"checkpoint-9", "checkpoint-10", "checkpoint-1000"})
    fs::copy(kData + "hf_qwen2", dir / step, fs::copy_options::recursive);
  fs::create_directory(dir / "logs");
  const auto error = error_of([&] { read_checkpoint(dir.path()); });
  CHECK(error.kind == ErrorKind::kCorrupt);
  CHECK_THAT(error.message,
             Contains("3 checkpoints: checkpoint-9, checkpoint-10, checkpoint-1000") &&
                 Contains(std::string("such as ") + dir.path() + "/checkpoint-1000"));
}

TEST_CASE("DeepSpeed's partitions of round-robin gradients are read by the shapes", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string path = dir / "ds";
  fs::copy(kData + "ds_zero2_round_robin", path, fs::copy_options::recursive);
  const NamedTensors run = read_checkpoint(path);
  const auto model =
      TorchArchive::open(FileRange::open(path + "/global_step3/mp_rank_00_model_states.pt"));
  const PickleValue module = member(model.root(), "module", "x");
  for (size_t i = 0; i < module.size(); ++i) {
    const std::string name(module.key(i).text());
    CAPTURE(name);
    CHECK(are_equal(*find_tensor(run, name), model.tensor(module.value(i), name)));
  }
  CHECK(find_tensor(run, "l2.weight", Role::kAdamV) != nullptr);
}

TEST_CASE("a checkpoint of DeepSpeed's stage 0 is its module and its optimizer", "[ckpt]") {
  const TemporaryDirectory dir;
  TorchSample sample;
  sample.pickle.begin_dict();
  sample.weights("module", kThree);
  sample.pickle.text("buffer_names");
  sample.pickle.begin_list();
  sample.pickle.end_list();
  sample.begin("optimizer");
  const bool is_fp32 = GENERATE(true, false);
  if (is_fp32) {
    sample.states(kThree, {3, 3, 3});
    sample.pickle.text("param_groups");
    sample.pickle.begin_list();
    sample.group(1e-3, 0.1, 0, 2, false);
    sample.pickle.end_list();
  } else {
    sample.weights("fp32_groups_flat", {{20}});
  }
  sample.pickle.end_dict();
  sample.number("global_steps", 3);
  sample.number("dp_world_size", 2);
  sample.begin("ds_config");
  sample.begin("zero_optimization");
  sample.number("stage", 0);
  sample.pickle.end_dict();
  sample.pickle.end_dict();
  sample.pickle.end_dict();
  fs::create_directories(dir / "ds/global_step3");
  fs::rename(sample.write(dir), dir / "ds/global_step3/mp_rank_00_model_states.pt");
  write_bytes(dir / "ds/latest", "global_step3");
  const NamedTensors run = read_checkpoint(dir / "ds");
  CHECK(run.format == "deepspeed");
  CHECK(run.step == 3);
  CHECK(run.world_size == 2);
  CHECK(run.tensors.size() == (is_fp32 ? 9 : 3));
  CHECK(run.optimizer.lost.empty() == is_fp32);
}

}  // namespace gxp
