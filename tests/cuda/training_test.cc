// Training on a GPU, or an emulated one, against float64 traces made with PyTorch;
// tests/data/train/README.md has the formulas.
#include <cmath>

#include "lib/train/cuda_backend.h"
#include "tests/catch.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

// As for the CPU (tests/train/golden_test.cc).
constexpr double kLossTolerance = 7e-6;      // absolute
constexpr double kNormTolerance = 2e-6;      // relative
constexpr double kHalfLossTolerance = 2e-3;  // PyTorch's own bf16 run is as far away

constexpr int kSteps = 4;

// The first steps of a golden run on ranks that share GPU 0.
std::vector<Trained> train_on_gpu(const std::string& folder, int world_size,
                                  std::vector<std::string> sets) {
  const RunConfig config = golden_config(folder, world_size, std::move(sets));
  return run_ranks(world_size, [&](Communicator& communicator) {
    Backend backend = make_cuda_backend(0, config.train, world_size);
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    Trained trained;
    while (trainer.steps_done() < kSteps) trained.steps.push_back(trainer.step(false));
    trained.weights = weights_of(trainer, communicator);
    return trained;
  });
}

nlohmann::json trace_of(const std::string& folder) {
  return read_json(golden_path(folder, "trace.json"))["float64"];
}

}  // namespace

TEST_CASE("a model trains on a GPU as its float64 trace says, under every strategy") {
  const std::string folder = GENERATE("gpt2-tiny", "llama-tiny");
  const std::string strategy = GENERATE("ddp", "zero3");
  const int world_size = GENERATE(1, 2);
  CAPTURE(folder, strategy, world_size);
  const nlohmann::json trace = trace_of(folder);
  for (const Trained& rank : train_on_gpu(folder, world_size, {"parallel.strategy=" + strategy})) {
    for (size_t s = 0; s < rank.steps.size(); ++s) {
      CHECK(std::fabs(rank.steps[s].loss - trace[s]["loss"].get<double>()) < kLossTolerance);
      CHECK(rank.steps[s].grad_norm ==
            Approx(trace[s]["grad_norm"].get<double>()).epsilon(kNormTolerance));
    }
  }
}

TEST_CASE("training on a GPU in half precision stays near the float64 trace") {
  const std::string folder = GENERATE("gpt2-tiny", "llama-tiny");
  const std::string precision = GENERATE("bf16", "fp16");
  CAPTURE(folder, precision);
  const nlohmann::json trace = trace_of(folder);
  for (const Trained& rank :
       train_on_gpu(folder, 2, {"parallel.strategy=zero2", "train.precision=" + precision})) {
    for (size_t s = 0; s < rank.steps.size(); ++s)
      CHECK(std::fabs(rank.steps[s].loss - trace[s]["loss"].get<double>()) < kHalfLossTolerance);
  }
}

TEST_CASE("training on a GPU gives the same bits twice, and wherever its state lies") {
  const std::vector<std::string> sets = {"parallel.strategy=zero2"};
  const std::vector<std::string> offloaded = {"parallel.strategy=zero2", "offload.optimizer=memory",
                                              "offload.step_tile=3001"};
  const Trained once = train_on_gpu("gpt2-tiny", 2, sets)[0];
  check_same(train_on_gpu("gpt2-tiny", 2, sets)[0], once);
  check_same(train_on_gpu("gpt2-tiny", 2, offloaded)[0], once);
}

}  // namespace gxp
