// Training on rows with labels: the loss is the mean over the targets that count.
#include <cmath>

#include "lib/train/model_view.h"
#include "lib/train/training_state.h"
#include "tests/catch.h"
#include "tests/combinations.h"
#include "tests/train/golden.h"
#include "tests/train/golden_model.h"
#include "tests/train/labelled_rows.h"

namespace gxp {
namespace {

const LabelledRows& uneven_rows() {
  static const LabelledRows rows(is_predicted_unevenly);
  return rows;
}

Trained train_steps(const std::string& path, int world_size, int grad_accum,
                    const Settings& more = {}) {
  const Settings sets = labelled_steps(path, world_size, grad_accum, more);
  return train_on_ranks(golden_config("gpt2-accum", 1, sets), world_size)[0];
}

}  // namespace

TEST_CASE("labels of -100 train as PyTorch's ignore_index, on any ranks and micro-batches",
          "[train]") {
  const auto [precision, loss_error, norm_error] = GENERATE(table<std::string, double, double>(
      {{"fp32", 7e-6, 2e-6}, {"bf16", 2e-3, 2e-2}, {"fp16", 2e-3, 2e-3}}));
  const int world_size = GENERATE(1, 3);
  const int grad_accum = GENERATE(1, 4);
  CAPTURE(precision, world_size, grad_accum);
  const nlohmann::json trace = read_json(golden_path("gpt2-labels", "trace.json"))["float64"];
  const Trained trained =
      train_steps(uneven_rows().path(), world_size, grad_accum, {"train.precision=" + precision});
  REQUIRE(trained.steps.size() == trace.size());
  for (size_t s = 0; s < trace.size(); ++s) {
    const StepResult& step = trained.steps[s];
    CHECK(std::fabs(step.loss - trace[s]["loss"].get<double>()) < loss_error);
    CHECK(step.grad_norm == Approx(trace[s]["grad_norm"].get<double>()).epsilon(norm_error));
    CHECK(step.targets == trace[s]["targets"]);
    CHECK(step.tokens == kLabelledStepRows * (kLabelledLength - 1));
  }
}

TEST_CASE("uneven labels train as on one rank in one micro-batch, and as under DDP to the bit",
          "[train][table]") {
  const auto [world_size, strategy, grad_accum, precision] =
      GENERATE(from_range(combinations<int, std::string, int, std::string>(
          {1, 2, 3}, {"ddp", "zero2", "zero3"}, {1, 2, 4}, {"fp32", "bf16"})));
  CAPTURE(world_size, strategy, grad_accum, precision);
  const Settings type = {"train.precision=" + precision};
  const auto once = [&](int ranks, int micro_batches) -> const Trained& {
    return trained_once("gpt2-accum", ranks,
                        labelled_steps(uneven_rows().path(), ranks, micro_batches, type), 1);
  };
  const Trained trained = train_steps(uneven_rows().path(), world_size, grad_accum,
                                      type + Settings{"parallel.strategy=" + strategy});
  check_same(trained, once(world_size, grad_accum));
  const Trained& whole = once(1, 1);
  // A key's bias has no gradient but the sums' roundings, of which Adam makes steps.
  const auto [of_losses, of_weights] =
      precision == "fp32" ? std::pair(1e-6, 3e-5) : std::pair(1e-3, 1e-2);
  for (size_t s = 0; s < whole.steps.size(); ++s) {
    CHECK(trained.steps[s].loss == Approx(whole.steps[s].loss).epsilon(of_losses));
    CHECK(trained.steps[s].targets == whole.steps[s].targets);
  }
  CHECK(relative_distance(trained.weights, whole.weights) < of_weights);
}

TEST_CASE("any-world-size: uneven labels train to the same bits on 1, 2 and 4 ranks", "[train]") {
  const auto sets = [](int world_size) {
    return Settings{"data.train=" + uneven_rows().path(), "train.steps=5", "train.micro_batch=2",
                    "train.deterministic=any-world-size",
                    fmt::format("train.grad_accum={}", 8 / world_size)};
  };
  const int world_size = GENERATE(2, 4);
  const std::string strategy = GENERATE("ddp", "zero3");
  const Trained& one = trained_once("gpt2-accum", 1, sets(1), 1);
  const Settings many = sets(world_size) + Settings{"parallel.strategy=" + strategy};
  check_same(train_on_ranks(golden_config("gpt2-accum", 1, many), world_size)[0], one);
}

TEST_CASE("rows whose labels are all ids train to the bits of rows without labels", "[train]") {
  const LabelledRows all([](size_t /*row*/, size_t /*i*/) { return true; });
  const std::string precision = GENERATE("fp32", "bf16", "fp16");
  const Settings type = {"train.precision=" + precision};
  const std::string plain = golden_path("gpt2-accum", "tokens.i32");
  const Trained labelled = train_steps(all.path(), 2, 2, type);
  check_same(labelled, train_steps(plain, 2, 2, type));
  CHECK(labelled.steps[0].targets == labelled.steps[0].tokens);
}

TEST_CASE("losses and gradients of labels and of their complement add up to those of all",
          "[train]") {
  const auto first = [](const std::string& path, const std::string& precision) {
    return train_steps(path, 3, 2, {"train.steps=1", "train.precision=" + precision});
  };
  const auto [precision, tolerance] =
      GENERATE(table<std::string, double>({{"fp32", 3e-6}, {"bf16", 2e-2}}));
  const LabelledRows rest(std::not_fn(is_predicted_unevenly));
  const Trained a = first(uneven_rows().path(), precision), b = first(rest.path(), precision);
  const Trained all = first(golden_path("gpt2-accum", "tokens.i32"), precision);
  const auto in_a = double(a.steps[0].targets), in_b = double(b.steps[0].targets);
  const auto in_all = double(all.steps[0].targets);
  CHECK(in_a + in_b == in_all);
  CHECK(a.steps[0].loss * in_a + b.steps[0].loss * in_b ==
        Approx(all.steps[0].loss * in_all).epsilon(tolerance));
  std::vector<Values> sums = a.first_gradients;
  for (size_t t = 0; t < sums.size(); ++t)
    for (size_t i = 0; i < sums[t].size(); ++i)
      sums[t][i] =
          float((a.first_gradients[t][i] * in_a + b.first_gradients[t][i] * in_b) / in_all);
  CHECK(relative_distance(sums, all.first_gradients) < tolerance);
}

TEST_CASE("a run on labels is resumed to the same bits, and not with other labels", "[train]") {
  const int world_size = GENERATE(1, 2);
  const TemporaryDirectory directory;
  const auto part = [&](const std::string& path, int until) {
    const Settings sets =
        labelled_steps(path, world_size, 2, {"checkpoint.dir=" + directory.path()});
    const RunConfig config = golden_config("gpt2-accum", 1, sets);
    return run_ranks(world_size, [&](Communicator& c) { return train_part(config, c, until); })[0];
  };
  part(uneven_rows().path(), 2);
  const LabelledRows other(
      [](size_t row, size_t i) { return is_predicted_unevenly(row, i) || (row == 100 && i == 3); });
  CHECK_THROWS_WITH(part(other.path(), 5),
                    Catch::Contains(".npy with labels") && Catch::Contains("with other content"));
  const Trained whole = train_steps(uneven_rows().path(), world_size, 2);
  CHECK(same_bits(part(uneven_rows().path(), 5).weights, whole.weights));
}

TEST_CASE("a step in which no target counts fails on every rank, before it changes weights",
          "[train]") {
  const int world_size = GENERATE(1, 2);
  const LabelledRows rows([](size_t row, size_t i) { return row == 5 || i == 0; });
  const RunConfig config =
      golden_config("gpt2-accum", 1, labelled_steps(rows.path(), world_size, 2));
  run_ranks(world_size, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, world_size);
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    CHECK(trainer.step(false).targets == kLabelledLength - 1);
    const std::vector<Values> before = weights_of(trainer, communicator);
    CHECK_THROWS_WITH(trainer.step(false),
                      Catch::Contains("make step 2: none of its 480 targets counts"));
    CHECK(same_bits(weights_of(trainer, communicator), before));
    return 0;
  });
}

TEST_CASE("evaluation is the mean over the targets that count, on any ranks", "[train]") {
  constexpr size_t kCount = 11;
  const auto evaluate_on = [](int world_size, const std::string& path, int micro_batch) {
    const Settings sets = {"data.valid=" + path, fmt::format("train.micro_batch={}", micro_batch)};
    const RunConfig config = golden_config("gpt2-accum", 1, sets);
    return run_ranks(world_size, [&](Communicator& communicator) {
      Backend backend = make_backend(config.train, world_size);
      return view_model(config, communicator, backend, {.evaluate = true}).loss.value();
    });
  };
  EvaluatedLoss sum;
  for (size_t row = 0; row < kCount; ++row) {
    const LabelledRows one(is_predicted_unevenly, row, 1);
    if (row % 6 >= 4) {
      CHECK_THROWS_WITH(evaluate_on(1, one.path(), 1), Catch::Contains("none of the targets"));
      continue;
    }
    const EvaluatedLoss loss = evaluate_on(1, one.path(), 1)[0];
    sum.sum += loss.sum;
    sum.targets += loss.targets;
  }
  const LabelledRows all(is_predicted_unevenly, 0, kCount);
  const int world_size = GENERATE(1, 2, 3), micro_batch = GENERATE(1, 4);
  for (const EvaluatedLoss& loss : evaluate_on(world_size, all.path(), micro_batch)) {
    CHECK(loss.targets == sum.targets);
    CHECK(loss.mean() == Approx(sum.mean()).epsilon(1e-6));
  }
}

TEST_CASE("validation has the loss that a step on the same labels has", "[train]") {
  const Settings sets = labelled_steps(
      uneven_rows().path(), 2, 3, {"data.valid=" + uneven_rows().path(), "train.valid_batches=3"});
  const RunConfig config = golden_config("gpt2-accum", 1, sets);
  const auto losses = run_ranks(2, [&](Communicator& communicator) {
    Backend backend = make_backend(config.train, 2);
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    const double valid = trainer.validate();
    return std::pair(valid, trainer.step(false).loss);
  });
  CHECK(losses[0].first == Approx(losses[0].second).epsilon(1e-6));
  CHECK(losses[1] == losses[0]);
}

}  // namespace gxp
