#include "lib/train/measure_classes.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/median.h"
#include "lib/collective/communicator.h"
#include "lib/train/graph_choice.h"
#include "lib/train/trainer.h"

namespace gxp {
namespace {

// On a GPU the first step chooses algorithms and allocates, the second records graphs.
constexpr int kWarmUpSteps = 3;
constexpr int kPlainSteps = 3;
constexpr int kMarkedSteps = 3;

bool starts_graphs(const RunConfig& config, Backend& backend, Trainer& trainer, double flops) {
  if (backend.device->space() != MemorySpace::kCuda) return false;
  const GraphChoice choice =
      choose_graphs(config, trainer.architecture(), trainer.positions(), flops);
  if (choice.records) trainer.record_graphs(choice.otherwise);
  return choice.records;
}

}  // namespace

ClassMeasurement measure_classes(const RunConfig& config, Communicator& communicator,
                                 Backend& backend) {
  ClassMeasurement found;
  found.device = backend.device->description();
  const std::optional<PeakRate> peak = peak_rate(backend, config.train);
  auto timed = std::make_unique<TimedOps>(std::move(backend.ops));
  TimedOps& times = *timed;
  backend.ops = std::move(timed);
  Trainer trainer(config, communicator, backend);
  trainer.initialise_weights();
  const bool graphs = starts_graphs(config, backend, trainer, peak ? peak->flops : 0);
  if (backend.device->space() == MemorySpace::kCuda) found.graphs = graphs ? "on" : "off";

  std::vector<double> plain;
  for (int step = 0; step < kWarmUpSteps + kPlainSteps; ++step) {
    const StepResult result = trainer.step(false);
    found.tokens = result.tokens;
    if (step >= kWarmUpSteps) plain.push_back(result.seconds);
  }
  found.plain_seconds = median_of(plain);
  const double flops =
      trainer.architecture().train_flops_per_token(trainer.positions()) * double(found.tokens);
  if (peak) {
    found.mfu = flops / found.plain_seconds / (peak->flops * communicator.world_size());
    found.mfu_of = peak->source;
  }

  trainer.runner().repeat_none();
  trainer.runner().observe(&times);
  std::vector<std::pair<double, ClassSeconds>> marked;
  for (int step = 0; step < kMarkedSteps; ++step) {
    const double seconds = trainer.step(false).seconds;
    marked.emplace_back(seconds, times.take());
  }
  const auto middle = marked.begin() + kMarkedSteps / 2;
  std::ranges::nth_element(marked, middle, {}, &std::pair<double, ClassSeconds>::first);
  std::tie(found.step_seconds, found.of_classes) = *middle;
  return found;
}

}  // namespace gxp
