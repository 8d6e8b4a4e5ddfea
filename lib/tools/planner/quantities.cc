#include "lib/tools/planner/quantities.h"

#include <algorithm>
#include <array>

#include "lib/tools/planner/predict_memory.h"

namespace gxp {
namespace {

int one(const ModelPlan& /*subject*/) { return 1; }

// One for each pipeline stage.
int layers_of_stages(const ModelPlan& subject) { return subject.plan.pipeline; }

void set_micro_batch(ModelPlan& subject, int value) { subject.plan.micro_batch = uint64_t(value); }

// A table of learned positions grows with the sequence.
void set_length(ModelPlan& subject, int value) {
  subject.plan.sequence = uint64_t(value);
  subject.model.positions = std::max(subject.model.positions, subject.plan.sequence);
}

void set_model_layers(ModelPlan& subject, int value) { subject.model.layers = uint64_t(value); }

constexpr std::array kModelQuantities = {
    Quantity<ModelPlan>{"batch", "--micro-batch", 1 << 16, one, set_micro_batch},
    Quantity<ModelPlan>{"seq", "--sequence", 1 << 20, one, set_length},
    Quantity<ModelPlan>{"layers", "layers of the model", 1 << 16, layers_of_stages,
                        set_model_layers},
};

}  // namespace

std::span<const Quantity<ModelPlan>> model_quantities() { return kModelQuantities; }

// Copies are added while they do not fit. Two GPUs may take more than one, for what joins them:
// one copy is asked first.
std::optional<int> least_gpus(const TrainCase& question, uint64_t limit_bytes) {
  TrainCase changed = question;
  const int each = question.plan.tensor * question.plan.pipeline * question.plan.context;
  const auto is_too_large = [&](int copies) {
    changed.plan.gpus = copies * each;
    return predict_memory(changed).total() > limit_bytes;
  };
  const int most = kMostGpus / each;
  const int copies = find_last(is_too_large, 1, most) + 1;
  if (copies > most) return std::nullopt;
  return copies * each;
}

}  // namespace gxp
