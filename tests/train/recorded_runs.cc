#include "tests/train/recorded_runs.h"

#include <chrono>
#include <cmath>

#include "lib/ckpt/cast.h"
#include "lib/config/load.h"
#include "lib/train/model/forward_pass.h"

namespace gxp {
namespace {

constexpr size_t kRecordedRows = 2;

// Five times the distance of the recorded values from float64's (tests/data/models/README.md).
constexpr double kSinglesTolerance = 4e-5;

// An fp32 run whose weights are rounded to a half type has one rounding for each product. A run in
// that type also rounds the product's other operand and the product. These three are of one size,
// so that their sum is at most three times the first; independent ones add up to the root of three.
constexpr double kRoundings = 3;

// From what is recorded.
struct Deviation {
  double largest_logit = 0;
  double logit = 0;         // root of the mean square
  double largest_loss = 0;  // of the five
};

// (rows, vocabulary): the logits behind the first `length` tokens of each row.
Values logits_behind(RankModel& model, const std::vector<int64_t>& ids, size_t length) {
  const RunPlan& plan = model.plan;
  StepShape shape = plan.shape;
  shape.rows = kRecordedRows;
  shape.positions = length;
  ForwardPass pass(
      model, shape,
      build_forward(plan.architecture, plan.layout, plan.strategy, shape, OpKind::kLogits));
  pass.fill = [&](const BatchTensors& batch) {
    for (size_t i = 0; i < kRecordedRows * length; ++i)
      batch.tokens.data<int32_t>()[i] =
          int32_t(ids[i / length * (ids.size() / kRecordedRows) + i % length]);
  };
  Values logits;
  pass.finish = [&](const UnitTensors& head) {
    logits.resize(head.output.count());
    Stream& compute = model.sharded.lanes[Lane::kCompute];
    compute.copy(memory_of(logits), head.output.memory);
    compute.finish(Deadline::after(std::chrono::minutes(5)));
  };
  model.parameters.publish();
  pass.run();
  return logits;
}

void compare_logits(RankModel& model, const NamedTensors& reference, Deviation& deviation) {
  const auto ids = read_all<int64_t>(reference, "input_ids");
  const auto expected = read_all<float>(reference, "logits");
  const size_t all = ids.size() / kRecordedRows, vocabulary = expected.size() / ids.size();
  double squares = 0, count = 0;
  for (const size_t length : {all, all - 1, all / 2}) {
    const Values found = logits_behind(model, ids, length);
    count += double(found.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const size_t position = i / vocabulary * all + length - 1;
      const double d = double(found[i]) - double(expected[position * vocabulary + i % vocabulary]);
      squares += d * d;
      deviation.largest_logit = std::max(deviation.largest_logit, std::abs(d));
    }
  }
  deviation.logit = std::sqrt(squares / count);
}

Deviation deviation_of(const NamedTensors& reference, const Settings& sets,
                       Backend (*make)(const TrainConfig& config)) {
  const TemporaryDirectory directory;
  const std::string rows = directory.path() + "/rows.i32";
  write_rows(rows, reference);
  const RunConfig config = five_steps(rows, reference, 1, sets);
  return run_ranks(1, [&](Communicator& communicator) {
    Backend backend = make(config.train);
    Trainer trainer(config, communicator, backend);
    trainer.initialise_weights();
    Deviation deviation;
    compare_logits(trainer.model(), reference, deviation);
    for (const float recorded : read_all<float>(reference, "step_losses"))
      deviation.largest_loss =
          std::max(deviation.largest_loss, std::abs(trainer.step(false).loss - double(recorded)));
    return deviation;
  })[0];
}

// The same directory in `directory`, its weights rounded to bf16 or fp16.
std::string round_weights(const std::string& name, const std::string& precision,
                          const TemporaryDirectory& directory) {
  const auto overflowed = std::make_shared<OverflowCount>(0);  // owners: here and the readers
  const NamedTensors weights = read_checkpoint(kRecorded + name);
  std::string target = directory / name;
  write_checkpoint(
      cast_weights(weights, precision == "bf16" ? StorageDType::kBF16 : StorageDType::kF16,
                   overflowed),
      find_format(weights.format), target, {});
  return target;
}

Deviation deviation_of_rounded(const NamedTensors& reference, const std::string& name,
                               const std::string& precision) {
  const TemporaryDirectory directory;
  const auto rounded = [&](const std::string& one) {
    return round_weights(one, precision, directory);
  };
  const Settings start = is_adapter(name) ? Settings{"model.init=" + rounded(base_of(name)),
                                                     "lora.init=" + rounded(name)}
                                          : Settings{"model.init=" + rounded(name)};
  return deviation_of(reference, start, make_host);
}

}  // namespace

Backend make_host(const TrainConfig& config) { return make_backend(config, 1); }

RunConfig five_steps(const std::string& rows, const NamedTensors& reference, int world_size,
                     const Settings& sets) {
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

void check_precision(const std::string& name, const std::string& precision,
                     Backend (*make)(const TrainConfig& config)) {
  CAPTURE(name, precision);
  const NamedTensors reference = reference_of(name);
  const Deviation found =
      deviation_of(reference, start_of(name) + Settings{"train.precision=" + precision}, make);
  if (precision == "fp32") {
    CHECK(found.logit < kSinglesTolerance);  // of no NaN
    CHECK(found.largest_logit < kSinglesTolerance);
    CHECK(found.largest_loss < kSinglesTolerance);
    return;
  }
  const Deviation rounded = deviation_of_rounded(reference, name, precision);
  CHECK(found.logit < kRoundings * rounded.logit);
  CHECK(found.logit > rounded.logit / kRoundings);  // halves it is
  // A token's loss changes by the inner product of p - onehot(target), which is no longer than
  // sqrt(2), and the changes of its logits: by sqrt(2) times one of these, if they are independent.
  // The mean of the tokens' changes is smaller by the root of their number. What updates make of
  // that in later steps shows in the losses of the rounded run.
  const double tokens =
      double(kRecordedRows * (find_tensor(reference, "input_ids")->info.shape[1] - 1));
  CHECK(found.largest_loss <
        kRoundings * (rounded.largest_loss + std::sqrt(2 / tokens) * rounded.logit));
}

}  // namespace gxp
