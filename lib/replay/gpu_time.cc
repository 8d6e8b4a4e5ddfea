#include "lib/replay/gpu_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace gxp {
namespace {

constexpr double kFullHead = 128;  // channels of a head with which attention reaches its share

class GpuRates {
 public:
  GpuRates(const Gpu& gpu, const RunPlan& plan)
      : gpu_(gpu),
        fitted_(*gpu.generation),
        flops_(gpu.flops_16 * gpu.clock_share),
        flops_8_(gpu.flops_8 * gpu.clock_share),
        attention_flops_(
            flops_ * fitted_.attention_flash *
            std::min(1.0, double(plan.architecture.config.channels_per_head()) / kFullHead)),
        backward_flops_(attention_flops_ * (plan.attends_in_any_order
                                                ? fitted_.any_order_attention
                                                : fitted_.ordered_attention)) {}

  [[nodiscard]] double seconds(const KernelWork& work) const {
    const double memory = work.bytes / (gpu_.memory_bytes_per_s * fitted_.pass_share);
    return std::max({memory, arithmetic(work),
                     work.instructions / (fitted_.instructions_per_s * gpu_.clock_share)});
  }
  [[nodiscard]] double ideal_seconds(const KernelWork& work) const {
    const bool multiplies = work.engine != KernelWork::Engine::kMemory;
    const double rate = work.engine == KernelWork::Engine::kProduct8 ? flops_8_ : flops_;
    return std::max(work.bytes / gpu_.memory_bytes_per_s, multiplies ? work.flops / rate : 0);
  }
  [[nodiscard]] double gaps(const KernelWork& work) const { return work.launches * fitted_.gap_s; }

 private:
  [[nodiscard]] double arithmetic(const KernelWork& work) const {
    switch (work.engine) {
      case KernelWork::Engine::kProduct:
        return work.flops / (flops_ * fitted_.own_product) *
               (1 + fitted_.own_half_width * work.narrow);
      case KernelWork::Engine::kProduct8:
        return work.flops / (flops_8_ * fitted_.own_product_8) *
               (1 + fitted_.own_half_width * work.narrow);
      case KernelWork::Engine::kAttention:
        return work.flops / attention_flops_;
      case KernelWork::Engine::kAttentionBackward:
        // Scores are made again: five products where the count has four.
        return 1.25 * work.flops / backward_flops_;
      case KernelWork::Engine::kMemory:
        return 0;
    }
    return 0;
  }

  const Gpu& gpu_;
  const Generation& fitted_;
  double flops_;
  double flops_8_;
  double attention_flops_;
  double backward_flops_;  // of attention
};

}  // namespace

double StepClasses::seconds() const {
  double sum = gap_seconds;
  for (const ClassTime& each : classes) sum += each.seconds;
  return sum;
}

Support can_predict(const RunPlan& plan, const Gpu& gpu) {
  if (plan.architecture.compute == DType::kF32)
    return {false, "rates are known for 16-bit products only; set train.precision=bf16"};
  if (plan.architecture.float8 && gpu.generation->own_product_8 == 0)
    return {false, fmt::format("the {}'s rate of fp8 products is unknown; set "
                               "train.matmul=precision",
                               gpu.name)};
  return {};
}

void check_predictable(const RunPlan& plan, const Gpu& gpu) {
  const Support known = can_predict(plan, gpu);
  if (!known) fail(ErrorKind::kUsage, "predict the time of kernels: {}", known.reason);
}

ComputeTime on_gpu(const Gpu& gpu) {
  return [&gpu](const RunPlan& plan, const Op& op) {
    const GpuRates rates(gpu, plan);
    double seconds = 0;
    for (const KernelWork& work : kernels_of(plan, op))
      seconds += rates.seconds(work) + rates.gaps(work);
    return seconds;
  };
}

StepClasses time_by_class(const RunPlan& plan, const Gpu& gpu) {
  const GpuRates rates(gpu, plan);
  std::array<std::optional<ClassTime>, kKernelClassNames.size()> found;
  StepClasses step;
  for (const Op& op : plan.step.program.ops) {
    for (const KernelWork& work : kernels_of(plan, op)) {
      auto& of = found[size_t(work.of)];
      if (!of) of.emplace().of = work.of;
      of->seconds += rates.seconds(work);
      of->ideal_seconds += rates.ideal_seconds(work);
      of->flops += work.flops;
      of->bytes += work.bytes;
      step.kernels += work.launches;
      step.gap_seconds += rates.gaps(work);
    }
  }
  for (const auto& each : found) {
    if (each) step.classes.push_back(*each);
  }
  return step;
}

}  // namespace gxp
