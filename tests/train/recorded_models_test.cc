// Runs that name only a directory of tests/data/models and data, beside what transformers and PEFT
// have recorded: losses, norms and gradients of five steps of AdamW.
#include <cmath>

#include "lib/ckpt/format.h"
#include "lib/config/load.h"
#include "lib/config/print.h"
#include "tests/error_of.h"
#include "tests/train/golden.h"
#include "tests/train/reference_files.h"

namespace gxp {
namespace {

const std::string kRecorded = std::string(GXP_TEST_DATA) + "/models/";

NamedTensors reference_of(const std::string& name) {
  return read_checkpoint(kRecorded + name + "/reference.safetensors");
}

// Five steps on both rows, as the references were made.
RunConfig five_steps(const std::string& rows, const NamedTensors& reference, int world_size,
                     Settings sets) {
  const size_t positions = find_tensor(reference, "input_ids")->info.shape[1];
  const Settings all = {"data.train=" + rows,
                        "data.sequence=" + std::to_string(positions - 1),
                        "data.order=sequential",
                        "train.steps=5",
                        "train.micro_batch=" + std::to_string(2 / world_size),
                        "train.threads=1",
                        "train.device=cpu",
                        "optim.lr=1e-3",
                        "optim.beta1=0.9",
                        "optim.beta2=0.95",
                        "optim.eps=1e-8",
                        "optim.weight_decay=0.1",
                        "optim.clip=1",
                        "lr_schedule.name=constant"};
  return load_config("", all + sets).run;
}

void check_steps(const Trained& trained, const NamedTensors& reference) {
  const auto losses = read_all<float>(reference, "step_losses");
  const auto norms = read_all<float>(reference, "step_grad_norms");
  REQUIRE(trained.steps.size() == losses.size());
  for (size_t step = 0; step < losses.size(); ++step) {
    CAPTURE(step);
    CHECK(std::abs(trained.steps[step].loss - double(losses[step])) < 1e-5);
    CHECK(trained.steps[step].grad_norm == Approx(double(norms[step])).epsilon(2e-4));
  }
}

double length_of(const Values& values) {
  double sum = 0;
  for (const float value : values) sum += double(value) * value;
  return std::sqrt(sum);
}

// `strategy` on so many ranks.
void check_recorded(const std::string& name, const std::string& strategy, int world_size,
                    const Settings& sets) {
  CAPTURE(name, strategy);
  const TemporaryDirectory directory;
  const std::string rows = directory.path() + "/rows.i32";
  const NamedTensors reference = reference_of(name);
  write_rows(rows, reference);
  const RunConfig config =
      five_steps(rows, reference, world_size, sets + Settings{"parallel.strategy=" + strategy});
  const Trained trained = train_on_ranks(config, world_size)[0];
  check_steps(trained, reference);
}

TEST_CASE("a run that names a directory takes its library's steps", "[train]") {
  const std::string name =
      GENERATE("gpt2-tied", "gpt2-untied", "gpt2-options", "neox-parallel", "neox-sequential",
               "llama-plain", "llama-gqa", "llama-rope-yarn", "llama-mlp-bias", "mistral-window",
               "qwen2-window", "qwen3", "smollm3-listed", "gemma", "gemma2", "gemma3", "phi",
               "phi-qk-norm", "phi3", "olmo2", "granite", "granite-untied-bias");
  check_recorded(name, "ddp", 1, {"model.init=" + kRecorded + name});
  check_recorded(name, "zero3", 2, {"model.init=" + kRecorded + name});
}

// The model below an adapter.
std::string base_of(const std::string& adapter) {
  if (adapter.starts_with("llama")) return "llama-gqa";
  return adapter.starts_with("gpt2") ? "gpt2-tied" : adapter.substr(0, adapter.find('-'));
}

TEST_CASE("adapters that PEFT has written take its steps", "[train]") {
  const std::string name =
      GENERATE("gpt2-lora-qkv", "llama-lora-all", "llama-lora-qv", "phi3-lora-fused",
               "qwen3-lora-all", "qwen3-lora-qv", "qwen3-lora-rs");
  const Settings sets = {"model.init=" + kRecorded + base_of(name),
                         "lora.init=" + kRecorded + name};
  check_recorded(name, "ddp", 1, sets);
  check_recorded(name, "zero3", 2, sets);
}

TEST_CASE("the first gradients of adapters are PEFT's", "[train]") {
  const std::string name = GENERATE("gpt2-lora-qkv", "llama-lora-all", "phi3-lora-fused");
  const TemporaryDirectory directory;
  const std::string rows = directory.path() + "/rows.i32";
  const NamedTensors reference = reference_of(name);
  write_rows(rows, reference);
  const RunConfig config =
      five_steps(rows, reference, 1,
                 {"model.init=" + kRecorded + base_of(name), "lora.init=" + kRecorded + name});
  const Trained trained = train_on_ranks(config, 1)[0];
  const Architecture architecture = run_architecture(config);
  size_t at = 0;
  for (const UnitSpec& unit : architecture.units) {
    for (const TensorSpec& spec : unit.tensors) {
      const Values& gradient = trained.first_gradients[at++];
      if (!spec.adapter) continue;
      CAPTURE(name, spec.name);
      Values expected = read_all<float>(reference, "grad." + spec.name);
      const double scale = length_of(expected);
      for (size_t i = 0; i < expected.size(); ++i) expected[i] -= gradient[i];
      CHECK(length_of(expected) < 1e-4 * scale);
    }
  }
}

TEST_CASE("a run does not begin with adapters of which only the numbers are there", "[train]") {
  const TemporaryDirectory directory;
  const std::string rows = directory.path() + "/rows.i32";
  const NamedTensors reference = reference_of("qwen3");
  write_rows(rows, reference);
  const RunConfig config =
      five_steps(rows, reference, 1,
                 {"model.init=" + kRecorded + "qwen3", "lora.rank=4", "lora.targets=q_proj,v_proj",
                  "lora.init=" + kRecorded + "qwen3-lora-qv/adapter_model.safetensors"});
  const Caught caught = error_of([&] { train_on_ranks(config, 1); });
  CHECK(caught.kind == ErrorKind::kConfig);
  CHECK(caught.says("not a directory as PEFT saves them"));
}

TEST_CASE("an adapter starts as nothing, and resumes and converts to the same bits", "[train]") {
  const TemporaryDirectory directory;
  const std::string rows = directory.path() + "/rows.i32";
  const NamedTensors reference = reference_of("qwen3");
  write_rows(rows, reference);
  const auto config_of = [&](const Settings& sets) {
    return five_steps(rows, reference, 1,
                      Settings{"model.init=" + kRecorded + "qwen3", "lora.rank=4"} + sets);
  };
  const Trained whole = train_on_ranks(config_of({}), 1)[0];
  CHECK(std::abs(whole.steps[0].loss - double(read_all<float>(reference, "loss")[0])) < 1e-5);

  const RunConfig saved = config_of({"checkpoint.dir=" + directory.path() + "/run"});
  run_ranks(1, [&](Communicator& communicator) { return train_part(saved, communicator, 2); });
  const Trained resumed = run_ranks(
      1, [&](Communicator& communicator) { return train_part(saved, communicator, 5); })[0];
  CHECK(same_bits(resumed.weights, whole.weights));

  NamedTensors checkpoint = read_checkpoint(directory.path() + "/run");
  checkpoint.config = flatten(saved);  // as a run records it
  const std::string adapter = directory.path() + "/adapter";
  write_checkpoint(checkpoint, find_format("peft"), adapter, {});
  const Trained again = train_on_ranks(
      five_steps(rows, reference, 1,
                 {"model.init=" + kRecorded + "qwen3", "lora.init=" + adapter, "train.steps=1"}),
      1)[0];
  CHECK(again.steps[0].loss < whole.steps[4].loss);
}

}  // namespace
}  // namespace gxp
