// The trainer's forward passes without a backward: validation and generated text.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <random>
#include <utility>

#include "lib/train/batch_place.h"
#include "lib/train/trainer.h"

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

struct Trainer::Pass {
  StepShape shape;
  StepProgram program;
  std::unique_ptr<ProgramMemory> memory;
  std::unique_ptr<ProgramRunner> runner;
  // Set by the caller before each run: what fills a batch, on the host, and what is done with the
  // head's tensors.
  std::function<void(const Tensor& tokens, const Tensor& targets)> fill;
  std::function<void(const UnitTensors& head)> finish;
};

std::unique_ptr<Trainer::Pass> Trainer::make_forward(const StepShape& shape, StepProgram program) {
  auto pass = std::make_unique<Pass>();
  pass->shape = shape;
  pass->program = std::move(program);
  pass->memory = std::make_unique<ProgramMemory>(*backend_.device, pass->program, *memory_);
  pass->runner =
      std::make_unique<ProgramRunner>(*backend_.lanes, pass->program, *pass->memory,
                                      [&](const Op& op) { return bind_forward(*pass, op); });
  return pass;
}

std::function<void()> Trainer::bind_forward(const Pass& pass, const Op& op) {
  if (op.kind == OpKind::kNextBatch) {
    // Owned by the function, which can be copied.
    const auto place = std::make_shared<BatchPlace>(
        *backend_.device, pass.memory->of(op.buffers.tokens), pass.memory->of(op.buffers.targets),
        Shape{pass.shape.rows, pass.shape.positions});
    return [this, &pass, place] {
      pass.fill(place->tokens(), place->targets());
      place->send(compute());
    };
  }
  if (op.kind == OpKind::kGatherParameters)
    return [this, &pass, op] { gather(pass.program, *pass.memory, op); };
  if (op.lane == Lane::kOffload) return offloaded_->bind(op, pass.program, *pass.memory);
  const BindingContext context{plan_.architecture, plan_.layout, *pass.memory, pass.shape.rows,
                               pass.shape.positions};
  return [this, &pass, op, tensors = bind_unit(context, op)] {
    if (op.kind == OpKind::kForward) {
      model_->forward(op.unit, tensors);
      return;
    }
    if (op.kind == OpKind::kEvaluateLoss) model_->evaluate_loss(tensors);
    if (op.kind == OpKind::kLogits) model_->logits(tensors);
    pass.finish(tensors);
  };
}

double Trainer::validate() {
  GXP_ASSERT(has_validation());
  publish_parameters();
  const std::unique_ptr<Pass> pass = make_forward(plan_.shape, plan_.validation.value());
  const SampleOrder order("sequential", 0, valid_->sample_count());
  BatchLoader loader(*valid_, order,
                     {communicator_.rank(), communicator_.world_size(), config_.train.micro_batch});
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
  communicator_.all_reduce(memory_of(sums), DType::kF64, ReduceOp::kSum);
  return sums[0] / sums[1];
}

std::vector<int32_t> Trainer::generate(std::vector<int32_t> tokens, int count, double temperature) {
  GXP_ASSERT(!tokens.empty());
  publish_parameters();
  const auto context = size_t(config_.model.context);
  std::mt19937_64 random(config_.train.seed);
  std::unique_ptr<Pass> pass;
  for (int drawn = 0; drawn < count; ++drawn) {
    // The window grows to the context, then slides: every token is made from all that the model can
    // see.
    const size_t window = std::min(tokens.size(), context);
    if (pass == nullptr || pass->shape.positions != window) {
      StepShape shape = plan_.shape;
      shape.rows = 1;
      shape.positions = window;
      pass = make_forward(shape, build_forward(plan_.architecture, plan_.layout, plan_.strategy,
                                               shape, OpKind::kLogits));
    }
    pass->fill = [&](const Tensor& input, const Tensor&) {
      std::copy(tokens.end() - std::ptrdiff_t(window), tokens.end(), input.data<int32_t>());
    };
    pass->finish = [&](const UnitTensors& head) {
      std::vector<float> logits(head.output.count());
      compute().copy(memory_of(logits), head.output.memory);
      finish_compute();
      tokens.push_back(draw(logits.data(), logits.size(), temperature, random));
    };
    pass->runner->run(Deadline::after(kComputeTimeout));
  }
  return tokens;
}

}  // namespace gxp
