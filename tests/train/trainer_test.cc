#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include "lib/base/log.h"
#include "lib/train/metrics.h"
#include "lib/train/model/weights_file.h"
#include "lib/train/progress.h"
#include "lib/train/resume_checks.h"
#include "tests/catch.h"
#include "tests/train/golden.h"
#include "tests/train/golden_model.h"

namespace gxp {
namespace {

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ino_t inode_of(const std::string& path) {
  struct stat status = {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_ino;
}

TEST_CASE("a loss that is not finite ends the run and leaves the weights alone", "[train]") {
  const RunConfig config = golden_config("gpt2-accum", 1);
  run_ranks(1, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, 1);
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    trainer.step(false);
    Values nan = {std::numeric_limits<float>::quiet_NaN()};
    trainer.state().write(trainer.state().weights()[5], 0, memory_of(nan));
    const std::vector<Values> before = weights_of(trainer, communicator);
    CHECK_THROWS_WITH(trainer.step(false), Catch::Contains("step 2: the loss is nan"));
    CHECK(weights_of(trainer, communicator)[0] == before[0]);
    return 0;
  });
}

TEST_CASE("nothing is allocated after the first step", "[train]") {
  const RunConfig config = golden_config("gpt2-tiny", 1);
  run_ranks(1, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, 1);
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    trainer.step(false);
    const uint64_t allocations = backend.device->tracker().allocation_count();
    for (int step = 0; step < 3; ++step) trainer.step(false);
    CHECK(backend.device->tracker().allocation_count() == allocations);
    return 0;
  });
}

TEST_CASE("one rank's request to stop reaches all in the same step", "[train]") {
  const RunConfig config = golden_config("gpt2-accum", 2);
  const auto stopped = run_ranks(2, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, 2);
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    std::vector<bool> requests;
    for (int step = 0; step < 3; ++step) {
      requests.push_back(trainer.step(communicator.rank() == 1 && step == 1).stop_requested);
    }
    return requests;
  });
  CHECK(stopped[0] == std::vector<bool>{false, true, false});
  CHECK(stopped[1] == stopped[0]);
}

TEST_CASE("seeded weights are the same on every world size, and others for another seed",
          "[train]") {
  const auto first_weights = [](int world_size, const std::string& seed) {
    const RunConfig config =
        golden_config("gpt2-accum", 1, {"model.init=normal", "train.seed=" + seed});
    return run_ranks(world_size, [&](Communicator& communicator) {
      Backend backend = make_backend(config.train, 1);
      Trainer trainer(config, communicator, backend);
      trainer.initialise_weights();
      return weights_of(trainer, communicator);
    });
  };
  CHECK(first_weights(1, "1")[0] == first_weights(3, "1")[2]);
  CHECK(first_weights(1, "1")[0] != first_weights(1, "2")[0]);
}

TEST_CASE("validation gives the loss that a step on the same rows has", "[train]") {
  // The first step's rows are the file's first; validation reads the same file from its start.
  const RunConfig config = golden_config(
      "gpt2-tiny", 2,
      {"data.valid=" + golden_path("gpt2-tiny", "tokens.i32"), "train.valid_batches=1"});
  const auto losses = run_ranks(2, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, 2);
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    const double valid = trainer.validate();
    return std::pair(valid, trainer.step(false).loss);
  });
  CHECK(losses[0].first == Approx(losses[0].second).epsilon(1e-6));
  CHECK(losses[1].first == losses[0].first);
}

TEST_CASE("metrics keep the lines of the steps before a resume, and none of the later ones",
          "[train]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/metrics.jsonl";
  const auto write_steps = [&](int64_t last_kept, std::vector<int64_t> steps) {
    MetricsFile file(path, last_kept);
    for (const int64_t step : steps) {
      StepMetrics metrics;
      metrics.result.step = step;
      metrics.result.seconds = 1;
      file.write(metrics);
    }
  };
  write_steps(0, {1, 2, 3});
  write_steps(2, {3, 4});
  std::vector<int64_t> steps;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    steps.push_back(nlohmann::json::parse(line)["step"]);
  CHECK(steps == std::vector<int64_t>{1, 2, 3, 4});
}

TEST_CASE("metrics are cut where a resume goes on, and what is kept is never written again",
          "[train]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "metrics.jsonl";
  const std::string kept = "{\"step\":1}\nnot metrics\n{\"step\":\"x\"}\n{\"step\":2}\n";
  std::ofstream(path) << kept << "{\"step\":3}\n{\"step\":4}\n{\"st";
  const ino_t file = inode_of(path);
  { const MetricsFile resumed(path, 2); }
  CHECK(text_of_file(path) == kept);
  CHECK(inode_of(path) == file);
  { const MetricsFile again(path, 0); }
  CHECK(text_of_file(path).empty());
}

TEST_CASE("weights that are not finite are named before the first step", "[train]") {
  const float bad = GENERATE(std::nanf(""), -INFINITY);
  std::vector<float> values(1000, 1.5f);
  values[700] = values[900] = bad;
  CHECK_THROWS_WITH(
      require_finite(memory_of(std::as_const(values)), "load weights from w", "h.0.attn", 50),
      Catch::Contains("load weights from w: element 750 of h.0.attn is") &&
          Catch::Contains("and 1 more"));
  values.assign(1000, -3e38f);
  CHECK_NOTHROW(require_finite(memory_of(std::as_const(values)), "load", "w", 0));
}

TEST_CASE("what decides over the steps and has changed since the checkpoint is one line",
          "[train]") {
  CheckpointInfo info;
  info.world_size = 2;
  info.config = {{"optim.lr", "0.001"},      {"lr_schedule.name", "\"cosine\""},
                 {"data.train", "[\"a\"]"},  {"train.steps", "40"},
                 {"train.micro_batch", "4"}, {"train.grad_accum", "1"},
                 {"train.log_every", "10"}};
  CHECK(describe_changes(info, info.config, 8).empty());
  const KeyValues now = {{"optim.lr", "1e-3"},       {"lr_schedule.name", "\"linear\""},
                         {"data.train", "[\"b\"]"},  {"train.steps", "80"},
                         {"train.micro_batch", "2"}, {"train.log_every", "1"}};
  CHECK(describe_changes(info, now, 4) ==
        "lr_schedule.name was \"cosine\", is now \"linear\"; data.train was [\"a\"], is now "
        "[\"b\"]; train.steps was 40, is now 80; a step had 8 samples, has now 4");
}

TEST_CASE("durations are short to read", "[train]") {
  CHECK(format_duration(12.4) == "12s");
  CHECK(format_duration(200) == "3m20s");
  CHECK(format_duration(3720) == "1h02m");
}

TEST_CASE("a device that is not there is refused with the reason for which auto passes it by",
          "[train]") {
  TrainConfig config;
  const std::string choice = make_backend(config, 1).choice;
  const std::string passed = "train.device auto: cpu; not cuda: ";
  if (!choice.starts_with(passed)) {
    WARN("skipped: needs a host without a GPU");
    return;
  }
  config.device = "cuda";
  CHECK_THROWS_WITH(make_backend(config, 1), Catch::Contains(choice.substr(passed.size())) &&
                                                 Catch::Contains("use auto or cpu"));
}

}  // namespace
}  // namespace gxp
