#include "lib/train/evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <utility>

#include "lib/collective/communicator.h"
#include "lib/data/batch_loader.h"
#include "lib/train/step/program_runner.h"
#include "lib/train/step/unit_binding.h"

namespace gxp {
namespace {

// Draws from softmax(logits / temperature).
int32_t draw(const float* logits, size_t vocabulary, double temperature, std::mt19937_64& random) {
  const float largest = *std::max_element(logits, logits + vocabulary);
  std::vector<double> weights(vocabulary);
  for (size_t i = 0; i < vocabulary; ++i)
    weights[i] = std::exp(double(logits[i] - largest) / temperature);
  return std::discrete_distribution<int32_t>(weights.begin(), weights.end())(random);
}

// A program with its memory and runner.
struct Pass {
  Pass(const Evaluation& evaluation, const StepShape& sizes, StepProgram steps)
      : shape(sizes),
        program(std::move(steps)),
        memory(*evaluation.backend.device, program, evaluation.sharded.memory),
        model(make_model(evaluation.sharded.plan.architecture, *evaluation.backend.ops)),
        runner(evaluation.sharded.lanes, program, memory,
               [&](const Op& op) { return bind(evaluation, op); }) {}

  std::function<void()> bind(const Evaluation& evaluation, const Op& op) {
    ShardedMemory& sharded = evaluation.sharded;
    if (op.lane == Lane::kOffload) return sharded.offloaded.bind(op, program, memory);
    if (op.kind == OpKind::kGatherParameters)
      return evaluation.parameters.bind_gather(op, program, memory);
    if (op.kind == OpKind::kNextBatch)
      return bind_next_batch(
          sharded.lanes, memory, shape, op,
          [this](const Tensor& tokens, const Tensor& targets) { fill(tokens, targets); });
    const UnitTensors t = bind_unit(sharded.plan, shape, memory, op);
    if (op.kind == OpKind::kForward) return [this, t, unit = op.unit] { model->forward(unit, t); };
    return [this, t, is_loss = op.kind == OpKind::kEvaluateLoss] {
      if (is_loss)
        model->evaluate_loss(t);
      else
        model->logits(t);
      finish(t);
    };
  }

  // Set before each run: what fills a batch, on the host, and what is done with the head's tensors.
  FillBatch fill;
  std::function<void(const UnitTensors& head)> finish;

  const StepShape shape;
  const StepProgram program;
  ProgramMemory memory;
  const std::unique_ptr<Model> model;
  ProgramRunner runner;
};

}  // namespace

double Evaluation::validate(const Dataset& data) const {
  parameters.publish();
  Pass pass(*this, sharded.plan.shape, sharded.plan.validation.value());
  const SampleOrder order(RowOrder::kSequential, 0, data.sample_count());
  BatchLoader loader(data, order,
                     {sharded.rank, sharded.groups.world_size, config.train.micro_batch});
  loader.start(0);
  std::array<double, 2> sums = {0, 0};  // losses, tokens
  pass.fill = [&](const Tensor& tokens, const Tensor& targets) {
    loader.next(tokens, targets, Deadline::after(kDataTimeout));
  };
  pass.finish = [&](const UnitTensors& head) {
    sums[0] += backend.ops->sum(head.losses);
    sums[1] += double(head.losses.count());
  };
  for (int batch = 0; batch < config.train.valid_batches; ++batch)
    pass.runner.run(Deadline::after(kComputeTimeout));
  sharded.calls.world().all_reduce(memory_of(sums), DType::kF64, ReduceOp::kSum);
  return sums[0] / sums[1];
}

std::vector<int32_t> Evaluation::generate(std::vector<int32_t> tokens, int count,
                                          double temperature) const {
  GXP_ASSERT(!tokens.empty());
  parameters.publish();
  const auto context = size_t(config.model.context);
  std::mt19937_64 random(config.train.seed);
  std::unique_ptr<Pass> pass;
  for (int drawn = 0; drawn < count; ++drawn) {
    // The window grows to the context, then slides: a token is made from all that the model sees.
    const size_t window = std::min(tokens.size(), context);
    if (pass == nullptr || pass->shape.positions != window) {
      const RunPlan& plan = sharded.plan;
      StepShape shape = plan.shape;
      shape.rows = 1;
      shape.positions = window;
      pass = std::make_unique<Pass>(
          *this, shape,
          build_forward(plan.architecture, plan.layout, plan.strategy, shape, OpKind::kLogits));
    }
    pass->fill = [&](const Tensor& input, const Tensor&) {
      std::copy(tokens.end() - std::ptrdiff_t(window), tokens.end(), input.data<int32_t>());
    };
    pass->finish = [&](const UnitTensors& head) {
      std::vector<float> logits(head.output.count());
      Stream& compute = sharded.lanes[Lane::kCompute];
      compute.copy(memory_of(logits), head.output.memory);
      compute.finish(Deadline::after(kComputeTimeout));
      tokens.push_back(draw(logits.data(), logits.size(), temperature, random));
    };
    pass->runner.run(Deadline::after(kComputeTimeout));
  }
  return tokens;
}

}  // namespace gxp
