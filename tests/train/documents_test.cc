// Training on packed rows, whose documents are kept apart.
#include "lib/replay/memory.h"
#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/train/packed_documents.h"

namespace gxp {
namespace {

Trained train_packed(const PackedDocuments& documents, const RunConfig& config, int world_size) {
  return run_ranks(world_size, [&](Communicator& communicator) {
    return train(config, communicator, make_backend(config.train, world_size), documents.data());
  })[0];
}

struct PackedRun {
  std::string folder;
  PackedDocuments documents{golden_config(folder, 1).model.vocab_size};

  [[nodiscard]] RunConfig config(const Settings& more) const {
    return golden_config(folder, 1, documents.settings() + more);
  }
  [[nodiscard]] Trained train(int world_size, const Settings& more) const {
    Settings sets = {fmt::format("train.micro_batch={}", kPackedRows / size_t(world_size))};
    return train_packed(documents, config(sets + more), world_size);
  }
};

}  // namespace

TEST_CASE("packed rows train as their documents do in rows of their own", "[train]") {
  const std::string folder = GENERATE("gpt2-accum", "llama-tiny");
  const auto [precision, of_losses, of_gradients] =
      GENERATE(table<std::string, double, double>({{"fp32", 1e-6, 2e-6}, {"bf16", 1e-3, 2e-2}}));
  CAPTURE(folder, precision);
  const PackedRun run{folder};
  const Settings type = {"train.precision=" + precision};
  const Trained packed = run.train(1, type);
  const Trained apart =
      train_on_ranks(golden_config(folder, 1, run.documents.settings_apart() + type), 1)[0];
  for (size_t s = 0; s < packed.steps.size(); ++s) {
    CHECK(packed.steps[s].targets == apart.steps[s].targets);
    CHECK(packed.steps[s].loss == Approx(apart.steps[s].loss).epsilon(of_losses));
  }
  CHECK(packed.steps[0].grad_norm == Approx(apart.steps[0].grad_norm).epsilon(of_gradients));
  CHECK(relative_distance(packed.first_gradients, apart.first_gradients) < of_gradients);
}

TEST_CASE("packed rows train to the same bits under every strategy, whatever is made again",
          "[train][table]") {
  const auto [folder, strategy, recompute, grad_accum, precision] =
      GENERATE(from_range(combinations<std::string, std::string, std::string, int, std::string>(
          {"gpt2-accum", "llama-tiny"}, {"zero2", "zero3"}, {"none", "selective", "full"}, {1, 2},
          {"fp32", "bf16"})));
  CAPTURE(folder, strategy, recompute, grad_accum, precision);
  const PackedRun run{folder};
  const Settings sets = {fmt::format("train.grad_accum={}", grad_accum),
                         fmt::format("train.micro_batch={}", 4 / grad_accum),
                         "train.precision=" + precision};
  check_same(run.train(2, sets + Settings{"parallel.strategy=" + strategy,
                                          "train.recompute=" + recompute}),
             run.train(2, sets));
}

TEST_CASE("any-world-size: packed rows train to the same bits on 1, 2 and 4 ranks", "[train]") {
  const PackedRun run{"gpt2-accum"};
  const auto train = [&](int world_size) {
    return run.train(world_size, {"train.deterministic=any-world-size", "train.micro_batch=2",
                                  fmt::format("train.grad_accum={}", 4 / world_size)});
  };
  const Trained one = train(1);
  for (const int world_size : {2, 4}) check_same(train(world_size), one);
}

TEST_CASE("with data.cross_documents packed rows train to the bits of rows without documents",
          "[train]") {
  const PackedRun run{"gpt2-accum"};
  const Trained crossing = run.train(1, {"data.cross_documents=true"});
  check_same(crossing, train_on_ranks(run.config({}), 1)[0]);
  CHECK(crossing.steps[0].targets == kPackedRows * (kPackedLength - 1));
  CHECK(crossing.steps[0].loss != run.train(1, {}).steps[0].loss);
}

TEST_CASE("packed validation has the loss that a step on the same rows has", "[train]") {
  const PackedRun run{"llama-tiny"};
  const RunConfig config = run.config({"train.valid_batches=1", "train.micro_batch=8"});
  const auto losses = run_ranks(1, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, 1);
    RunConfig validated = config;
    validated.data.valid = config.data.train;
    Trainer trainer(validated, communicator, backend,
                    {run.documents.dataset(), run.documents.dataset()});
    trainer.initialise_weights();
    const double valid = trainer.validate();
    return std::pair(valid, trainer.step(false).loss);
  });
  CHECK(losses[0].first == Approx(losses[0].second).epsilon(1e-6));
}

TEST_CASE("the memory of packed rows is planned to the byte", "[train]") {
  const std::string folder = GENERATE("gpt2-accum", "llama-tiny");
  const std::string recompute = GENERATE("none", "full");
  const PackedRun run{folder};
  RunConfig config = run.config({"train.recompute=" + recompute, "train.grad_accum=2"});
  const auto found = run_ranks(1, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, 1);
    Trainer trainer(config, communicator, backend, run.documents.data());
    trainer.initialise_weights();
    trainer.step(false);
    return backend.device->tracker().peak().by_kind;
  });
  const auto planned = [&] {
    return memory_of_run(plan_run(config, 1), {.world_size = 1, .transport = "inproc"}, 0, {}).peak;
  };
  const uint64_t without = total_of(planned());
  config.data.packed = true;
  CHECK(found[0] == planned());
  CHECK(total_of(found[0]) > without);
}

}  // namespace gxp
