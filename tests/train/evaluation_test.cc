// The loss of all of data.valid, by runs that make no steps.
#include "lib/train/model/evaluation.h"

#include <fstream>

#include "lib/config/load.h"
#include "lib/train/model_view.h"
#include "lib/train/training_state.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

// So many rows of gpt2-tiny's tokens, as a file each.
class RowFiles {
 public:
  explicit RowFiles(int count) {
    std::ifstream all(golden_path("gpt2-tiny", "tokens.i32"), std::ios::binary);
    std::vector<char> row((size_t(golden_config("gpt2-tiny", 1).data.sequence) + 1) *
                          sizeof(int32_t));
    for (int i = 0; i < count; ++i) {
      REQUIRE(all.read(row.data(), std::streamsize(row.size())));
      const std::string path = directory_.path() + "/" + std::to_string(i) + ".i32";
      std::ofstream(path, std::ios::binary).write(row.data(), std::streamsize(row.size()));
    }
  }
  [[nodiscard]] std::string all() const { return directory_.path(); }
  [[nodiscard]] std::string one(int row) const {
    return directory_.path() + "/" + std::to_string(row) + ".i32";
  }

 private:
  const TemporaryDirectory directory_;
};

// What every rank found.
std::vector<EvaluatedLoss> losses_on(int world_size, const Settings& sets) {
  const RunConfig config = golden_config("gpt2-tiny", 1, sets);
  return run_ranks(world_size, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, world_size);
    return view_model(config, communicator, backend, {.evaluate = true}).loss.value();
  });
}

TEST_CASE("evaluation drops nothing", "[train]") {
  const RowFiles files(2);
  const Settings adapted = {"data.valid=" + files.all(), "lora.rank=4"};
  const double whole = losses_on(1, adapted)[0].mean();
  CHECK(losses_on(1, adapted + Settings{"lora.dropout=0.5"})[0].mean() == whole);
}

TEST_CASE("evaluation counts every row once, on any ranks and with any strategy", "[train]") {
  constexpr int kRows = 7;
  const RowFiles files(kRows);
  double mean = 0;
  uint64_t tokens = 0;
  for (int row = 0; row < kRows; ++row) {
    const EvaluatedLoss loss =
        losses_on(1, {"data.valid=" + files.one(row), "train.micro_batch=1"})[0];
    mean += loss.mean() / kRows;
    tokens += loss.targets;
  }
  const int world_size = GENERATE(1, 2, 3);
  const std::string strategy = GENERATE("ddp", "zero2", "zero3");
  const int micro_batch = GENERATE(1, 2, 5);
  CAPTURE(world_size, strategy, micro_batch);
  const auto losses = losses_on(
      world_size, {"data.valid=" + files.all(), "parallel.strategy=" + strategy,
                   "train.valid_batches=1", "train.micro_batch=" + std::to_string(micro_batch)});
  for (const EvaluatedLoss& loss : losses) {
    CHECK(loss.targets == tokens);
    CHECK(loss.mean() == Approx(mean).epsilon(1e-6));
  }
}

TEST_CASE("a run that makes no steps holds its parameters, and the memory of a forward pass",
          "[train]") {
  const RowFiles files(2);
  const std::string precision = GENERATE("fp32", "bf16");
  const RunConfig config =
      golden_config("gpt2-tiny", 1, {"data.valid=" + files.all(), "train.precision=" + precision});
  run_ranks(1, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, 1);
    const ModelView view = view_model(config, communicator, backend, {.evaluate = true});
    const MemoryUse peak = backend.device->tracker().peak();
    CHECK(peak[MemoryKind::kGradients] == 0);
    CHECK(peak[MemoryKind::kOptimizer] == 0);
    const size_t each = precision == "fp32" ? 4 : 2;
    CHECK(peak[MemoryKind::kParameters] >= view.parameters * each);
    CHECK(peak[MemoryKind::kParameters] < view.parameters * each * 11 / 10);
    return 0;
  });
}

TEST_CASE("evaluation has the loss that a training run's validation has", "[train]") {
  const RowFiles files(4);
  const auto [world_size, sets] =
      GENERATE(table<int, Settings>({{1, {"train.precision=bf16"}},
                                     {2, {"train.precision=bf16", "parallel.strategy=zero3"}},
                                     {1, {"train.precision=bf16", "train.rounding=stochastic"}},
                                     {1, {"offload.optimizer=memory", "offload.parameters=memory"}},
                                     {2,
                                      {"train.precision=fp16", "parallel.strategy=zero3",
                                       "offload.optimizer=memory", "offload.parameters=memory"}}}));
  CAPTURE(world_size, sets);
  const Settings all = sets + Settings{"data.valid=" + files.all(), "train.micro_batch=1",
                                       "train.valid_batches=" + std::to_string(4 / world_size)};
  const RunConfig config = golden_config("gpt2-tiny", 1, all);
  const auto trained = run_ranks(world_size, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, 1);
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    return trainer.validate();
  });
  CHECK(losses_on(world_size, all)[0].mean() == trained[0]);
}

TEST_CASE("the weights of a checkpoint are loaded alone, whatever has trained them", "[train]") {
  const RowFiles files(4);
  const TemporaryDirectory directory;
  const Settings sets = {"checkpoint.dir=" + directory.path(), "data.valid=" + files.all(),
                         "train.valid_batches=2"};
  const RunConfig config = golden_config("gpt2-tiny", 2, sets);
  const auto trained = run_ranks(2, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, 2);
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    trainer.step(false);
    save_state(trainer, communicator, config, {});
    return trainer.validate();
  });
  const RunConfig other =
      golden_config("gpt2-tiny", 1, sets + Settings{"optim.name=lion", "parallel.strategy=zero3"});
  const int world_size = GENERATE(1, 3);
  const auto views = run_ranks(world_size, [&](Communicator& communicator) {
    Backend backend = make_backend(other.train, world_size);
    return view_model(other, communicator, backend, {.evaluate = true, .resume = true});
  });
  CHECK(views[0].step == 1);
  CHECK(views[0].loss->mean() == Approx(trained[0]).epsilon(1e-6));
}

TEST_CASE("evaluation of checkpoints needs one", "[train]") {
  const RowFiles files(1);
  const TemporaryDirectory directory;
  const RunConfig config = golden_config(
      "gpt2-tiny", 1, {"checkpoint.dir=" + directory.path(), "data.valid=" + files.all()});
  run_ranks(1, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, 1);
    CHECK_THROWS_WITH(view_model(config, communicator, backend, {.evaluate = true, .resume = true}),
                      Catch::Contains("there is no checkpoint"));
    return 0;
  });
}

}  // namespace
}  // namespace gxp
