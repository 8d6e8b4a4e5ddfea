// Runs that another program has begun: tests/data/ckpt/moved/README.md says how they were made.
#include <algorithm>

#include "lib/ckpt/format.h"
#include "lib/config/load.h"
#include "lib/config/print.h"
#include "lib/train/training_state.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/train/golden.h"
#include "tests/train/golden_model.h"

namespace gxp {
namespace {

constexpr int kSavedStep = 10;
constexpr int kRows = 12;  // of a step, on all ranks

std::string moved_path(const std::string& name) {
  return std::string(GXP_TEST_DATA) + "/ckpt/moved/" + name;
}

// The settings of the runs, as moved_runs.py has them.
RunConfig moved_config(int world_size, const std::string& checkpoints, const Settings& more = {}) {
  Settings sets = {"data.train=" + moved_path("tokens.i32"),
                   "data.order=sequential",
                   "train.steps=30",
                   fmt::format("train.micro_batch={}", kRows / world_size),
                   "train.threads=1",
                   "train.device=cpu",
                   "optim.lr=3e-3",
                   "lr_schedule.name=cosine",
                   "lr_schedule.warmup_steps=4",
                   "lr_schedule.total_steps=29",
                   "lr_schedule.min_lr=3e-4",
                   "checkpoint.dir=" + checkpoints};
  const nlohmann::json run = read_json(moved_path("run.json"));
  for (const auto& [key, value] : golden_model({{"arch", "gpt2"}, {"model", run["model"]}}))
    sets.push_back(fmt::format("model.{}={}", key,
                               value.is_string() ? value.get<std::string>() : value.dump()));
  return load_config("", sets + more).run;
}

void convert(const NamedTensors& tensors, const std::string& to) {
  write_checkpoint(tensors, find_format("gxp"), to, {});
}

TEST_CASE("a run of PyTorch or DeepSpeed goes on with the losses that it goes on to have there",
          "[train]") {
  const auto [run, world_size] =
      GENERATE(table<std::string, int>({{"fsdp2", 3}, {"zero2", 1}, {"zero3", 1}}));
  const std::string strategy = GENERATE("ddp", "zero3");
  CAPTURE(run, world_size, strategy);
  const TemporaryDirectory directory;
  convert(read_checkpoint(moved_path(run)), directory / "checkpoints");
  const RunConfig config =
      moved_config(world_size, directory / "checkpoints", {"parallel.strategy=" + strategy});
  const Trained resumed = run_ranks(
      world_size, [&](Communicator& c) { return train_part(config, c, config.train.steps); })[0];
  const nlohmann::json losses = read_json(moved_path("run.json"))["losses"][run];
  REQUIRE(resumed.steps.size() == losses.size() - kSavedStep);
  for (size_t s = 0; s < resumed.steps.size(); ++s)
    CHECK(resumed.steps[s].loss ==
          Approx(losses[kSavedStep + s].get<double>()).epsilon(1e-5).margin(0));
}

TEST_CASE("what a foreign checkpoint tells of its optimizer is known", "[train]") {
  const std::string run = GENERATE("fsdp2", "zero2", "zero3");
  CAPTURE(run);
  const NamedTensors read = read_checkpoint(moved_path(run));
  CHECK(read.step == kSavedStep);
  CHECK(read.samples_consumed == (run == "fsdp2" ? std::nullopt : std::optional(10u * kRows)));
  CHECK(find_value(read.config, "optim.name") == "\"adamw\"");
  CHECK(find_value(read.config, "optim.beta1") == "0.9");
  CHECK(find_value(read.config, "optim.beta2") == "0.95");
  CHECK(find_value(read.config, "optim.eps") == "1e-08");
  CHECK(find_value(read.config, "optim.weight_decay") == "0.1");
  CHECK(std::stod(find_value(read.state, "optimizer.lr").value()) ==
        Approx(0.0026604895100309865).epsilon(1e-9));
  CHECK(find_value(read.config, "optim.decay_vectors") == "false");
}

// A change of what the checkpoint holds, or of the run's settings, and what the error then says.
struct Refusal {
  void (*change)(NamedTensors&);
  Settings sets;
  std::vector<std::string> says;
};

void nothing(NamedTensors&) {}

void erase(NamedTensors& run, const std::string& name, Role role) {
  std::erase_if(run.tensors, [&](const NamedTensor& tensor) {
    return tensor.info.name == name && tensor.info.role == role;
  });
}

void weights_only(NamedTensors& run) {
  std::erase_if(run.tensors, [](const auto& tensor) { return tensor.info.role != Role::kWeight; });
}

bool is_amsgrad(const std::pair<std::string, std::string>& setting) {
  return setting.first == "amsgrad";
}

// A setting of the first group of parameters.
void set(NamedTensors& run, const std::string& key, const std::string& value) {
  auto& settings = run.optimizer.groups.at(0).settings;
  std::erase_if(settings, [&](const auto& setting) { return setting.first == key; });
  settings.emplace_back(key, value);
}

std::vector<Refusal> refusals() {
  return {
      {nothing, {"model.layers=2"}, {"tensor transformer.h.1.", "does [model] in the run file"}},
      {nothing, {"model.hidden=16"}, {"has the shape (19, 8), [model] requires (19, 16)"}},
      {nothing, {"optim.name=sgd"}, {"optim.name is \"adamw\" there and \"sgd\" in this run"}},
      {[](NamedTensors& run) { run.step.reset(); }, {}, {"the step at which it was saved"}},
      {[](NamedTensors& run) {
         run.optimizer.steps = {{"transformer.wpe.weight", 3}};
       },
       {},
       {"the optimizer's step is 3 for 'transformer.wpe.weight'", "--step 3"}},
      {[](NamedTensors& run) { set(run, "maximize", "true"); }, {}, {"have maximize on"}},
      {[](NamedTensors& run) { set(run, "max_coeff", "10.0"); }, {}, {"have max_coeff = 10.0"}},
      {[](NamedTensors& run) { std::erase_if(run.optimizer.groups[0].settings, is_amsgrad); },
       {},
       {"RAdam"}},
      {weights_only, {}, {"it holds no optimizer state", "keeps adam_m, adam_v"}},
      {[](NamedTensors& run) { erase(run, "transformer.wpe.weight", Role::kAdamV); },
       {},
       {"the optimizer state of transformer.wpe.weight (adam_v) is missing"}},
      {[](NamedTensors& run) { erase(run, "transformer.ln_f.bias", Role::kWeight); },
       {},
       {"tensor transformer.ln_f.bias is missing"}},
      {[](NamedTensors& run) {
         run.tensors.push_back(run.tensors.front());
         run.tensors.back().info.name = "score.weight";
       },
       {},
       {"it has the weight score.weight"}},
      {[](NamedTensors& run) {
         for (NamedTensor& tensor : run.tensors)
           if (tensor.info.role == Role::kAdamM && tensor.info.name == "transformer.wpe.weight")
             tensor.info.shape = {64};
       },
       {},
       {"the adam_m of transformer.wpe.weight has the shape (64)"}}};
}

TEST_CASE("a run is not continued from what contradicts it or lacks a part, which the error names",
          "[train]") {
  const Refusal row = GENERATE(from_range(refusals()));
  CAPTURE(row.says);
  const TemporaryDirectory directory;
  NamedTensors run = read_checkpoint(moved_path("zero3"));
  row.change(run);
  convert(run, directory / "checkpoints");
  const RunConfig config = moved_config(1, directory / "checkpoints", row.sets);
  const auto resume = [&] {
    run_ranks(1, [&](Communicator& communicator) {
      Backend backend = make_backend(config.train, 1);
      Trainer trainer(config, communicator, backend);
      return resume_state(trainer, communicator, config, flatten(config));
    });
  };
  const Caught error = error_of(resume);
  CHECK(error.kind == ErrorKind::kConfig);
  for (const std::string& words : row.says) CHECK(error.says(words));
}

TEST_CASE("weights of other types become F32 when a run goes on from them", "[train]") {
  const TemporaryDirectory directory;
  NamedTensors run = read_checkpoint(moved_path("zero3"));
  for (NamedTensor& tensor : run.tensors) {
    if (tensor.info.role != Role::kWeight) continue;
    tensor.info.dtype = StorageDType::kF64;
    tensor.read = [read = tensor.read](uint64_t begin, Memory out) {
      Values narrow(out.bytes / sizeof(double));
      read(begin, memory_of(narrow));
      std::ranges::copy(narrow, reinterpret_cast<double*>(out.data));
    };
  }
  convert(run, directory / "checkpoints");
  const RunConfig config = moved_config(1, directory / "checkpoints");
  const Trained resumed =
      run_ranks(1, [&](Communicator& c) { return train_part(config, c, kSavedStep + 1); })[0];
  CHECK(resumed.steps[0].loss ==
        Approx(read_json(moved_path("run.json"))["losses"]["zero3"][kSavedStep].get<double>())
            .epsilon(1e-5));
}

}  // namespace
}  // namespace gxp
