#include "lib/train/evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <utility>

#include "lib/data/batch_loader.h"
#include "lib/train/program_runner.h"
#include "lib/train/unit_binding.h"

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

}  // namespace

struct Evaluation::Pass {
  StepShape shape;
  StepProgram program;
  std::unique_ptr<ProgramMemory> memory;
  std::unique_ptr<ProgramRunner> runner;
  // Set by the caller before each run: what fills a batch, on the host, and what is done with the
  // head's tensors.
  FillBatch fill;
  std::function<void(const UnitTensors& head)> finish;
};

Evaluation::Evaluation(const RunConfig& config, Backend& backend, ShardedMemory& held,
                       Parameters& parameters)
    : config_(config),
      backend_(backend),
      held_(held),
      parameters_(parameters),
      model_(make_model(held.plan.architecture, *backend.ops)) {}

std::unique_ptr<Evaluation::Pass> Evaluation::make_pass(const StepShape& shape,
                                                        StepProgram program) {
  auto pass = std::make_unique<Pass>();
  pass->shape = shape;
  pass->program = std::move(program);
  pass->memory = std::make_unique<ProgramMemory>(*backend_.device, pass->program, held_.memory);
  pass->runner = std::make_unique<ProgramRunner>(held_.lanes, pass->program, *pass->memory,
                                                 [&](const Op& op) { return bind(*pass, op); });
  return pass;
}

std::function<void()> Evaluation::bind(const Pass& pass, const Op& op) {
  if (op.lane == Lane::kOffload) return held_.offloaded.bind(op, pass.program, *pass.memory);
  if (op.kind == OpKind::kGatherParameters)
    return parameters_.bind_gather(op, pass.program, *pass.memory);
  if (op.kind == OpKind::kNextBatch)
    return bind_next_batch(
        held_.lanes, *pass.memory, pass.shape, op,
        [&pass](const Tensor& tokens, const Tensor& targets) { pass.fill(tokens, targets); });
  Model& model = *model_;
  const UnitTensors t = bind_unit(held_.plan, pass.shape, *pass.memory, op);
  if (op.kind == OpKind::kForward) return [&model, t, unit = op.unit] { model.forward(unit, t); };
  return [&model, &pass, t, is_loss = op.kind == OpKind::kEvaluateLoss] {
    if (is_loss)
      model.evaluate_loss(t);
    else
      model.logits(t);
    pass.finish(t);
  };
}

double Evaluation::validate(const Dataset& data) {
  parameters_.publish();
  const std::unique_ptr<Pass> pass = make_pass(held_.plan.shape, held_.plan.validation.value());
  const SampleOrder order("sequential", 0, data.sample_count());
  BatchLoader loader(data, order, {held_.rank, held_.groups.world_size, config_.train.micro_batch});
  loader.start(0);
  std::array<double, 2> sums = {0, 0};  // losses, tokens
  pass->fill = [&](const Tensor& tokens, const Tensor& targets) {
    loader.next(tokens, targets, Deadline::after(kDataTimeout));
  };
  pass->finish = [&](const UnitTensors& head) {
    sums[0] += backend_.ops->sum(head.losses);
    sums[1] += double(head.losses.count());
  };
  for (int batch = 0; batch < config_.train.valid_batches; ++batch) {
    pass->runner->run(Deadline::after(kComputeTimeout));
  }
  held_.calls.world().all_reduce(memory_of(sums), DType::kF64, ReduceOp::kSum);
  return sums[0] / sums[1];
}

std::vector<int32_t> Evaluation::generate(std::vector<int32_t> tokens, int count,
                                          double temperature) {
  GXP_ASSERT(!tokens.empty());
  parameters_.publish();
  const auto context = size_t(config_.model.context);
  std::mt19937_64 random(config_.train.seed);
  std::unique_ptr<Pass> pass;
  for (int drawn = 0; drawn < count; ++drawn) {
    // The window grows to the context, then slides: every token is made from all that the model can
    // see.
    const size_t window = std::min(tokens.size(), context);
    if (pass == nullptr || pass->shape.positions != window) {
      const RunPlan& plan = held_.plan;
      StepShape shape = plan.shape;
      shape.rows = 1;
      shape.positions = window;
      pass = make_pass(shape, build_forward(plan.architecture, plan.layout, plan.strategy, shape,
                                            OpKind::kLogits));
    }
    pass->fill = [&](const Tensor& input, const Tensor&) {
      std::copy(tokens.end() - std::ptrdiff_t(window), tokens.end(), input.data<int32_t>());
    };
    pass->finish = [&](const UnitTensors& head) {
      std::vector<float> logits(head.output.count());
      Stream& compute = held_.lanes[Lane::kCompute];
      compute.copy(memory_of(logits), head.output.memory);
      compute.finish(Deadline::after(kComputeTimeout));
      tokens.push_back(draw(logits.data(), logits.size(), temperature, random));
    };
    pass->runner->run(Deadline::after(kComputeTimeout));
  }
  return tokens;
}

}  // namespace gxp
