#include "lib/estimate/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "lib/base/find_row.h"

namespace gxp {
namespace {

constexpr size_t kMostChanges = 3;

ActivationShape shape_of(const EstimateQuestion& question) {
  ActivationShape shape =
      activation_shape(*question.model, question.sequence, question.micro_batch);
  shape.tensor_parallel = uint64_t(question.tensor);
  shape.sequence_parallel = question.sequence_parallel;
  shape.pipeline_parallel = uint64_t(question.pipeline);
  shape.interleave = uint64_t(question.interleave);
  return shape;
}

RuntimeQuestion runtime_question(const EstimateQuestion& question, const Training& part,
                                 const Placement& placement) {
  RuntimeQuestion asked{
      .parameters = part.parameters, .precision = part.precision, .placement = placement};
  if (!question.model) return asked;
  asked.unit = block_parameter_count(*question.model) / uint64_t(question.tensor);
  asked.small =
      parameters_in_small_tensors(*question.model, kPersistentTensor) / uint64_t(question.pipeline);
  return asked;
}

int one(const EstimateQuestion& /*question*/) { return 1; }

// One for each stage.
int least_layers(const EstimateQuestion& question) { return question.pipeline; }

void set_batch(EstimateQuestion& question, int value) { question.micro_batch = uint64_t(value); }

// A table of learned positions grows with it.
void set_sequence(EstimateQuestion& question, int value) {
  question.sequence = uint64_t(value);
  question.model->positions = std::max(question.model->positions, question.sequence);
  question.training.parameters = parameter_count(*question.model);
}

void set_layers(EstimateQuestion& question, int value) {
  question.model->layers = uint64_t(value);
  question.training.parameters = parameter_count(*question.model);
}

constexpr std::array kQuantities = {
    EstimateQuantity{"batch", "--micro-batch", 1 << 16, one, set_batch},
    EstimateQuantity{"seq", "--sequence", 1 << 20, one, set_sequence},
    EstimateQuantity{"layers", "layers of the model", 1 << 16, least_layers, set_layers},
};

struct Variant {
  std::string what;
  EstimateQuestion question;
};
using Variants = std::vector<Variant>;  // of one kind, the smallest change first

Variants shard_more(const EstimateQuestion& question) {
  Variants variants;
  if (question.placement.gpus == question.model_parallel()) return variants;
  for (int stage = question.placement.stage + 1; stage <= kMostStage; ++stage) {
    variants.push_back({fmt::format("--stage {}", stage), question});
    variants.back().question.placement.stage = stage;
  }
  if (question.placement.shard == 0 || question.placement.stage == 0) return variants;
  variants.push_back({"shards over all GPUs, no --shard", question});
  variants.back().question.placement.shard = 0;
  return variants;
}

Variants recompute(const EstimateQuestion& question) {
  Variants variants;
  for (int i = int(question.recompute) + 1; i <= int(Recompute::kFull); ++i) {
    if (question.sequence == 0) break;
    variants.push_back({fmt::format("--recompute {}", kRecomputeNames[size_t(i)]), question});
    variants.back().question.recompute = Recompute(i);
  }
  return variants;
}

Variants smaller_batches(const EstimateQuestion& question) {
  Variants variants;
  for (uint64_t batch = question.micro_batch / 2; batch >= 1 && question.sequence > 0; batch /= 2) {
    variants.push_back({fmt::format("--micro-batch {}", batch), question});
    variants.back().question.micro_batch = batch;
  }
  return variants;
}

// Within a host of eight.
Variants cut_layers(const EstimateQuestion& question) {
  Variants variants;
  for (int tensor = 2 * question.tensor; tensor <= 8; tensor *= 2) {
    if (!question.model || question.placement.shard != 0) break;
    if (question.model->heads % uint64_t(tensor) != 0) continue;
    if (question.placement.gpus % (tensor * question.pipeline) != 0) continue;
    variants.push_back({fmt::format("--tensor-parallel {} --sequence-parallel", tensor), question});
    variants.back().question.tensor = tensor;
    variants.back().question.sequence_parallel = true;
  }
  return variants;
}

Variants more_gpus(const EstimateQuestion& question) {
  Variants variants;
  for (int times = 2; times <= 1024 && question.placement.shard == 0; times *= 2) {
    if (question.placement.stage == 0 || question.placement.gpus > kMostGpus / times) break;
    variants.push_back({fmt::format("--gpus {}", times * question.placement.gpus), question});
    variants.back().question.placement.gpus *= times;
  }
  return variants;
}

// From the cheapest to the dearest.
using Kind = Variants (*)(const EstimateQuestion&);
constexpr std::array<Kind, 5> kKinds = {shard_more, recompute, smaller_batches, cut_layers,
                                        more_gpus};

// One change of each kind in the set, by bits of kKinds, that together fit; of the dearer ones as
// small as possible.
std::optional<Variant> find_fitting(const Variant& before, unsigned kinds, uint64_t limit_bytes) {
  if (kinds == 0) {
    if (estimate(before.question).total() <= limit_bytes) return before;
    return std::nullopt;
  }
  const unsigned dearest = std::bit_width(kinds) - 1;
  for (Variant& next : kKinds[dearest](before.question)) {
    if (!before.what.empty()) next.what = before.what + " " + next.what;
    if (auto found = find_fitting(next, kinds & ~(1U << dearest), limit_bytes)) return found;
  }
  return std::nullopt;
}

// All sets of kinds, small ones first, then those of cheap kinds.
std::vector<unsigned> sets_of_kinds() {
  std::vector<unsigned> sets((1U << kKinds.size()) - 1);
  std::iota(sets.begin(), sets.end(), 1U);
  std::ranges::stable_sort(sets, {}, [](unsigned set) { return std::popcount(set); });
  return sets;
}

}  // namespace

uint64_t sum_of(const std::vector<Term>& terms) {
  uint64_t bytes = 0;
  for (const Term& term : terms) bytes += term.bytes;
  return bytes;
}

uint64_t Estimate::total() const { return states.total() + sum_of(activations) + sum_of(buffers); }

std::string_view Estimate::binding() const {
  const std::array<std::pair<uint64_t, const char*>, 5> parts = {
      {{states.parameters, "parameters"},
       {states.gradients, "gradients"},
       {states.optimizer(), "optimizer"},
       {sum_of(activations), "activations"},
       {sum_of(buffers), "buffers"}}};
  return std::ranges::max_element(parts, {}, [](const auto& part) { return part.first; })->second;
}

Estimate estimate(const EstimateQuestion& question) {
  const auto parts = uint64_t(question.model_parallel());
  Training part = question.training;
  part.parameters = (part.parameters + parts - 1) / parts;
  Placement placement = question.placement;
  placement.gpus /= question.model_parallel();
  Estimate result{.states = model_states(part, placement),
                  .explained_states = explain_model_states(part, placement),
                  .activations = {},
                  .buffers = {}};
  if (question.sequence > 0)
    result.activations = explain_activations(shape_of(question), question.recompute);
  if (question.runtime != nullptr)
    result.buffers = question.runtime->buffers(runtime_question(question, part, placement));
  return result;
}

std::span<const EstimateQuantity> estimate_quantities() { return kQuantities; }

const EstimateQuantity& find_estimate_quantity(std::string_view name) {
  return find_row(kQuantities, name, "--solve");
}

int most_gpus(const EstimateQuestion& question) {
  return kMostGpus / question.model_parallel() * question.model_parallel();
}

// Several GPUs take more than one only for what joins them.
std::optional<int> least_gpus(const EstimateQuestion& question, uint64_t limit_bytes) {
  const int each = question.model_parallel();
  EstimateQuestion changed = question;
  const auto fits = [&](int copies) {
    changed.placement.gpus = copies * each;
    return estimate(changed).total() <= limit_bytes;
  };
  if (fits(1)) return each;
  int low = 1;  // does not fit
  int high = most_gpus(question) / each;
  if (!fits(high)) return std::nullopt;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high * each;
}

std::vector<EstimateChange> changes_that_fit(const EstimateQuestion& question,
                                             uint64_t limit_bytes) {
  std::vector<EstimateChange> changes;
  std::vector<unsigned> sufficient;
  for (const unsigned kinds : sets_of_kinds()) {
    const auto is_part = [&](unsigned part) { return (part & kinds) == part; };
    if (changes.size() == kMostChanges || std::ranges::any_of(sufficient, is_part)) continue;
    const auto found = find_fitting({"", question}, kinds, limit_bytes);
    if (!found) continue;
    sufficient.push_back(kinds);
    changes.push_back({found->what, estimate(found->question).total()});
  }
  return changes;
}

}  // namespace gxp
