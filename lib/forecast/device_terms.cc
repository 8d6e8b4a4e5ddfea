#include "lib/forecast/device_terms.h"

#include <algorithm>

#include "kernels/cudnn_workspace.h"

namespace gxp {
namespace {

// cuBLASLt's workspace (kernels/cuda/cublas_products.h), of the compute lane.
constexpr uint64_t kProductWorkspace = uint64_t{32} << 20;

// In half precision, the copy of a gradient of the residual stream that is multiplied.
uint64_t copied_stream(const RunPlan& plan, const RunConfig& config) {
  if (config.train.precision == "fp32") return 0;
  const uint64_t tokens = plan.shape.rows * plan.shape.positions;
  return tokens * uint64_t(config.model.hidden) * sizeof(uint16_t);
}

// In half precision, a GELU that nobody wants where its argument is made again.
uint64_t gelu_made_again(const RunPlan& plan, const RunConfig& config) {
  const auto is_recompute = [](const Op& op) { return op.kind == OpKind::kRecompute; };
  if (config.train.precision == "fp32" || config.model.family != "gpt2") return 0;
  if (std::ranges::none_of(plan.step.program.ops, is_recompute)) return 0;
  const uint64_t tokens = plan.shape.rows * plan.shape.positions;
  return tokens * 4 * uint64_t(config.model.hidden) * sizeof(uint16_t);
}

// What attention by cuDNN takes, where it may be computed so (kernels/cuda/cuda_attention.h).
uint64_t attention_workspace(const RunPlan& plan, const RunConfig& config) {
  const ModelConfig& model = config.model;
  const AttentionShape batch = {.batch = plan.shape.rows,
                                .positions = plan.shape.positions,
                                .heads = size_t(model.heads),
                                .kv_heads = size_t(model.kv_head_count()),
                                .head_size = size_t(model.channels_per_head())};
  if (config.train.attention == "own" || config.train.precision == "fp32") return 0;
  if (batch.head_size % 8 != 0) return 0;
  const std::vector<AttentionSlice> slices = attention_slices(batch);
  return slices.empty() ? 0 : cudnn_workspace_bytes(shape_of(batch, slices.front()));
}

}  // namespace

size_t measured_width(bool on_gpu) { return on_gpu ? 4096 : 512; }

DeviceTerms terms_of_device(const RunConfig& config, const RunPlan& plan, bool on_gpu) {
  const uint64_t width = measured_width(on_gpu);
  DeviceTerms terms{.start_bytes = 3 * width * width * sizeof(float)};
  if (!on_gpu) return terms;
  // One after the other, in the same memory.
  const uint64_t beside_product =
      std::max(copied_stream(plan, config), gelu_made_again(plan, config));
  terms.workspace_bytes =
      std::max(kProductWorkspace + beside_product, attention_workspace(plan, config));
  terms.holds_collectives = false;
  return terms;
}

}  // namespace gxp
