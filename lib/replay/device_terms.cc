#include "lib/replay/device_terms.h"

#include <algorithm>

#include "kernels/cudnn_workspace.h"
#include "lib/base/bytes.h"

namespace gxp {
namespace {

// cuBLASLt's workspace (kernels/cuda/gemm/cublas_products.h), of the compute lane.
constexpr uint64_t kProductWorkspace = uint64_t{32} << 20;

// Of an operand of an 8-bit product (kernels/cuda/gemm/cuda_float8.cc): its scale, and its codes as they
// are, or transposed with rows up to a multiple of 16.
constexpr uint64_t kFloat8Alignment = 256;
uint64_t codes(uint64_t rows, uint64_t columns) {
  return round_up(rows * columns, kFloat8Alignment);
}
uint64_t transposed_codes(uint64_t rows, uint64_t columns) {
  return codes(round_up(rows, 16), columns);
}

// The most that products with a matrix of a block take for operands. Backward makes the codes of
// dout both ways, then those of the weight, then in their place those of the input. But where an
// activation comes between the two products, in Llama's last one, dout has them apart.
uint64_t float8_operands(uint64_t tokens, const TensorSpec& weight, bool inputs_first,
                         bool has_backward, bool is_apart) {
  const uint64_t in = weight.shape[inputs_first ? 0 : 1];
  const uint64_t out = weight.shape[inputs_first ? 1 : 0];
  const uint64_t scales = 2 * kFloat8Alignment;
  const uint64_t matrix = codes(in, out);
  const uint64_t forward = scales + codes(tokens, in) + matrix;
  if (!has_backward) return forward;
  const uint64_t dout = codes(tokens, out);
  const uint64_t of_input = scales + dout + matrix;
  if (weight.frozen) return std::max(forward, of_input);
  const uint64_t turned = transposed_codes(tokens, out);
  const uint64_t turned_in = transposed_codes(tokens, in);
  const uint64_t backward = is_apart ? std::max(of_input, scales + turned + turned_in)
                                     : scales + dout + turned + std::max(matrix, turned_in);
  return std::max(forward, backward);
}

uint64_t float8_operands(const RunPlan& plan) {
  const Architecture& architecture = plan.architecture;
  const auto lowest = size_t(architecture.lowest_trained_unit());
  uint64_t most = 0;
  for (size_t u = 0; u < architecture.units.size(); ++u) {
    const UnitSpec& unit = architecture.units[u];
    if (unit.kind != UnitKind::kBlock) continue;
    for (const TensorSpec& weight : unit.tensors) {
      if (weight.shape.size() != 2) continue;
      const bool is_apart = !architecture.inputs_first && &weight == &unit.tensors.back();
      most = std::max(most, float8_operands(plan.shape.rows * plan.shape.positions, weight,
                                            architecture.inputs_first, u >= lowest, is_apart));
    }
  }
  return most;
}

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

// What attention by cuDNN takes, where it may be computed so (kernels/cuda/attention/cuda_attention.h).
uint64_t attention_workspace(const RunPlan& plan, const RunConfig& config) {
  const ModelConfig& model = config.model;
  const AttentionShape batch = {.batch = plan.shape.rows,
                                .positions = plan.shape.positions,
                                .heads = size_t(model.heads),
                                .kv_heads = size_t(model.kv_head_count()),
                                .head_size = size_t(model.channels_per_head())};
  if (config.train.attention == "own" || config.train.precision == "fp32") return 0;
  if (batch.head_size % 8 != 0) return 0;
  const std::vector<AttentionSlice> slices =
      attention_slices(batch, most_cudnn_workspace(process_environment()));
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
      plan.architecture.float8
          ? float8_operands(plan)
          : std::max(copied_stream(plan, config), gelu_made_again(plan, config));
  terms.workspace_bytes =
      std::max(kProductWorkspace + beside_product, attention_workspace(plan, config));
  terms.holds_collectives = false;
  return terms;
}

}  // namespace gxp
