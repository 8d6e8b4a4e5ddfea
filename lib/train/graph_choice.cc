#include "lib/train/graph_choice.h"

#include <fmt/format.h>

#include <algorithm>

namespace gxp {
namespace {

constexpr double kLongSeconds = 1e-3;

// 2 operations for each parameter and token, and as many for each channel and pair of positions of
// which attention counts the causal half.
double forward_flops_of_block(const Architecture& architecture, size_t positions, size_t tokens) {
  size_t parameters = 0;
  for (const UnitSpec& unit : architecture.units)
    if (unit.kind == UnitKind::kBlock) parameters = std::max(parameters, unit.parameter_count());
  const double attention = double(architecture.attention_channels) * double(positions);
  return 2 * (double(parameters) + attention) * double(tokens);
}

}  // namespace

GraphChoice choose_graphs(const RunConfig& config, const Architecture& architecture,
                          size_t positions, double flops_per_s) {
  if (config.train.cuda_graphs != CudaGraphs::kAuto)
    return {config.train.cuda_graphs == CudaGraphs::kOn, WithoutRecording::kFail,
            "as train.cuda_graphs says"};
  if (config.lora.dropout > 0)
    return {false, WithoutRecording::kWarn, "lora.dropout has other numbers in each step"};
  const size_t tokens = size_t(config.train.micro_batch) * positions;
  const double seconds = forward_flops_of_block(architecture, positions, tokens) / flops_per_s;
  const bool is_short = seconds < kLongSeconds;
  return {is_short, WithoutRecording::kWarn,
          fmt::format("a block's forward pass takes {:.3f} ms at the GPU's rate, {} 1 ms",
                      seconds * 1e3, is_short ? "less than" : "not less than")};
}

}  // namespace gxp
