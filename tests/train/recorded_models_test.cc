// Runs that name only a directory of tests/data/models and data, beside what transformers and PEFT
// have recorded: losses, norms and gradients of five steps of AdamW.
#include <cmath>

#include "lib/config/print.h"
#include "lib/train/training_state.h"
#include "tests/error_of.h"
#include "tests/train/recorded_runs.h"

namespace gxp {
namespace {

double length_of(const Values& values) {
  double sum = 0;
  for (const float value : values) sum += double(value) * value;
  return std::sqrt(sum);
}

// `strategy` on so many ranks.
void check_recorded(const std::string& name, const std::string& strategy, int world_size) {
  CAPTURE(name, strategy);
  const TemporaryDirectory directory;
  const std::string rows = directory.path() + "/rows.i32";
  const NamedTensors reference = reference_of(name);
  write_rows(rows, reference);
  const RunConfig config = five_steps(rows, reference, world_size,
                                      start_of(name) + Settings{"parallel.strategy=" + strategy});
  const Trained trained = train_on_ranks(config, world_size)[0];
  check_steps(trained, reference);
}

TEST_CASE("a run that names a model or an adapter takes its library's steps", "[train]") {
  const std::string name = GENERATE(from_range(kTrainedModels), from_range(kTrainedAdapters));
  check_recorded(name, "ddp", 1);
  check_recorded(name, "zero3", 2);
}

TEST_CASE("in halves a model or an adapter stays within their rounding of its library", "[train]") {
  const std::string name = GENERATE(from_range(kTrainedModels), from_range(kTrainedAdapters));
  const std::string precision = GENERATE("bf16", "fp16");
  check_precision(name, precision, make_host);
}

TEST_CASE("the first gradients of adapters are PEFT's", "[train]") {
  const std::string name = GENERATE("gpt2-lora-qkv", "llama-lora-all", "phi3-lora-fused");
  const TemporaryDirectory directory;
  const std::string rows = directory.path() + "/rows.i32";
  const NamedTensors reference = reference_of(name);
  write_rows(rows, reference);
  const RunConfig config = five_steps(rows, reference, 1, start_of(name));
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

TEST_CASE("adapters are not taken for a model, nor a model's run for one with them", "[train]") {
  const TemporaryDirectory directory;
  const std::string rows = directory.path() + "/rows.i32";
  const NamedTensors reference = reference_of("qwen3");
  write_rows(rows, reference);
  const Settings model = {"model.init=" + kRecorded + "qwen3"};
  const std::string run = directory.path() + "/run";
  const Settings kept = {"checkpoint.dir=" + run};
  const auto begin = [&](const Settings& sets, bool resumes) {
    const RunConfig config = five_steps(rows, reference, 1, sets);
    run_ranks(1, [&](Communicator& communicator) {
      Backend backend = make_host(config.train);
      Trainer trainer(config, communicator, backend);
      if (resumes) return resume_state(trainer, communicator, config, flatten(config));
      trainer.initialise_weights();
      trainer.step(false);
      if (!config.checkpoint.dir.empty())
        save_state(trainer, communicator, config, flatten(config));
      return true;
    });
  };
  begin(model + kept + Settings{"lora.rank=4"}, false);
  struct Case {
    Settings sets;
    bool resumes;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {{"model.init=" + kRecorded + "qwen3-lora-qv"}, false, "give it as lora.init"},
      {{"model.init=" + run}, false, "LoRA adapters beside the weights"},
      {model + kept, true, "lora.rank is 4 there and 0 in this run"},
      {model + kept + Settings{"lora.rank=8"}, true, "lora.rank is 4 there and 8 in this run"},
      {model + kept + Settings{"lora.rank=4", "lora.targets=q_proj"}, true,
       "lora.targets is [\"all-linear\"] there"}};
  for (const Case& refused : cases) {
    const Caught caught = error_of([&] { begin(refused.sets, refused.resumes); });
    CAPTURE(refused.reason, caught.message);
    CHECK(caught.kind == ErrorKind::kConfig);
    CHECK(caught.says(refused.reason));
  }
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
