// Training runs of other programs of many kinds, a row each: what is in them is kept through a
// conversion, or the conversion is refused and says what stands against it.
#include "lib/ckpt/torch/pt_file.h"
#include "lib/ckpt/torch/torch_archive.h"
#include "lib/tools/checkpoints/rename.h"
#include "tests/ckpt/conversions.h"
#include "tests/ckpt/torch_samples.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

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

// What of an optimizer cannot be kept, in the refusal's words, and a file that has it.
struct LostPart {
  std::string words;
  std::function<void(TorchSample&)> put;
};

void put_group(TorchSample& sample, bool has_names) {
  sample.pickle.text("param_groups");
  sample.pickle.begin_list();
  sample.group(1e-3, 0.1, 0, int64_t(kThree.size()) - 1, has_names);
  sample.pickle.end_list();
}

void put_optimizer(TorchSample& sample, const char* key, const char* more) {
  sample.begin(key);
  sample.states(kThree, {3, 3, 3}, more);
  put_group(sample, true);
  sample.pickle.end_dict();
}

const std::vector<LostPart>& lost_parts() {
  static const std::vector<LostPart> kParts = {
      {"max_exp_avg_sq",
       [](TorchSample& sample) { put_optimizer(sample, "optimizer", "max_exp_avg_sq"); }},
      {"2 optimizers of one file (optimizer, optimizer_d)",
       [](TorchSample& sample) {
         put_optimizer(sample, "optimizer", "");
         put_optimizer(sample, "optimizer_d", "");
       }},
      {"the tensors beside the optimizer in 'optimizer'",
       [](TorchSample& sample) {
         sample.begin("optimizer");
         put_optimizer(sample, "optimizer", "");
         sample.weights("fp32_from_fp16_params", kThree);
         sample.pickle.end_dict();
       }},
      {"the parameters of its optimizer state",
       [](TorchSample& sample) {
         sample.begin("optimizer");
         sample.states({{9}, {4}, {2}}, {3, 3, 3});
         put_group(sample, false);
         sample.pickle.end_dict();
       }},
      {"a step that is no whole number",
       [](TorchSample& sample) {
         sample.begin("optimizer");
         sample.states(kThree, {3, 3, 2.5});
         put_group(sample, true);
         sample.pickle.end_dict();
       }},
  };
  return kParts;
}

TEST_CASE("what of an optimizer cannot be kept is dropped only if asked", "[ckpt]") {
  const TemporaryDirectory dir;
  const LostPart lost = GENERATE(from_range(lost_parts()));
  CAPTURE(lost.words);
  TorchSample sample;
  sample.pickle.begin_dict();
  sample.weights("model", kThree);
  lost.put(sample);
  sample.number("step", 3);
  sample.pickle.end_dict();
  const NamedTensors run = read_checkpoint(sample.write(dir));
  for (const char* format : {"pt", "dcp", "gxp", "universal"})
    CHECK_THAT(refused_conversion(run, format, dir),
               Contains(lost.words) && Contains("--drop-optimizer"));
  CHECK(converted(run, "gxp", dir / "gxp", {.drop_optimizer = true}).tensors.size() == 3);
  CHECK(converted(run, "safetensors", dir / "out.safetensors").tensors.size() == 3);
}

TEST_CASE("moments whose step is not known are written to no other program", "[ckpt]") {
  const TemporaryDirectory dir;
  NamedTensors run = training_run();
  run.step = std::nullopt;
  const std::string format = GENERATE("pt", "dcp", "universal");
  CHECK_THAT(refused_conversion(run, format, dir), Contains("--step"));
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
  alone.optimizer();
  CHECK_THAT(error_of([&, path = alone.write(dir)] { read_pt(path); }).message,
             Contains("an optimizer alone"));
  TorchSample among;
  among.pickle.begin_dict();
  among.begin("net");
  among.begin("part");
  among.pickle.text("adam");
  among.optimizer();
  for (int i = 0; i < 3; ++i) among.pickle.end_dict();
  CHECK_THAT(error_of([&, path = among.write(dir)] { read_pt(path); }).message,
             Contains("'net.part.adam' is an optimizer's state_dict()"));
}

TEST_CASE("a model and its optimizer are found below the root, where Composer has them", "[ckpt]") {
  const TemporaryDirectory dir;
  TorchSample sample;
  sample.pickle.begin_dict();
  sample.number("rng", 1);
  sample.begin("state");
  sample.weights("model", kThree);
  sample.begin("optimizers");
  sample.pickle.text("AdamW");
  sample.optimizer();
  for (int i = 0; i < 3; ++i) sample.pickle.end_dict();
  const NamedTensors read = read_pt(sample.write(dir));
  CHECK(read.tensors.size() == 9);
  CHECK(find_tensor(read, "w2", Role::kAdamV) != nullptr);
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

TEST_CASE("DeepSpeed's partitions of round-robin gradients are read by the shapes", "[ckpt]") {
  const TemporaryDirectory dir;
  const std::string path = dir / "ds";
  fs::copy(GXP_TEST_DATA "/ckpt/ds_zero2_round_robin", path, fs::copy_options::recursive);
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
