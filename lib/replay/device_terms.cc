#include "lib/replay/device_terms.h"

#include <algorithm>

#include "kernels/cudnn_workspace.h"
#include "kernels/product_scratch.h"
#include "lib/collective/engine/device_memory/device_peers.h"

namespace gxp {
namespace {

// Code and tables of cuBLASLt, cuDNN and the driver, loaded when a kernel first runs (some hundred
// MiB, of which bench/gpu_check.py allows 768), and CUDA graphs.
constexpr uint64_t kLibraryBytes = uint64_t{1} << 30;

// A tensor of which only shape and type are looked at, and that it is there.
Tensor planned(DType type, size_t rows, size_t columns) {
  static std::byte place;
  return {{&place, rows * columns * size_of(type), MemorySpace::kCuda}, type, {rows, columns}};
}

// The products of one micro-batch with a matrix of a block (lib/model).
class MatrixScratch {
 public:
  MatrixScratch(const Architecture& architecture, const TensorSpec& matrix, const TensorSpec* bias,
                size_t tokens)
      : is_outputs_first_(!architecture.inputs_first),
        float8_(architecture.float8),
        keeps_activated_(architecture.kept == KeptOutputs::kAll),
        is_frozen_(matrix.frozen),
        input_(matrix.input) {
    const DType type = architecture.compute;
    const size_t inputs = matrix.shape[is_outputs_first_ ? 1 : 0];
    const size_t outputs = matrix.shape[is_outputs_first_ ? 0 : 1];
    in_ = planned(type, tokens, inputs);
    out_ = planned(type, tokens, outputs);
    weight_ = planned(type, matrix.shape[0], matrix.shape[1]);
    dweight_ = planned(DType::kF32, matrix.shape[0], matrix.shape[1]);
    if (bias != nullptr && !bias->frozen) dbias_ = planned(DType::kF32, 1, outputs);
  }

  [[nodiscard]] size_t forward() const {
    return scratch_of_matmul(
        out_, in_, weight_,
        {.transpose_b = is_outputs_first_, .float8 = operands_of_forward(float8_)});
  }

  // If only the GELU's argument is made again, the fused epilogue also writes its value, unused.
  [[nodiscard]] size_t recompute() const {
    if (input_ != ProductInput::kGelu) return 0;
    return scratch_of({.activated = keeps_activated_ ? in_ : Tensor(),
                       .x = in_,
                       .in = out_,
                       .weight = weight_,
                       .bias = {},
                       .float8 = float8_});
  }

  [[nodiscard]] size_t backward(bool accumulates) const {
    if (input_ == ProductInput::kActivated) return activated_backward();
    return scratch_of({.dx = in_,
                       .dweight = is_frozen_ ? Tensor() : dweight_,
                       .dbias = dbias_,
                       .dout = out_,
                       .in = in_,
                       .weight = weight_,
                       .accumulate = accumulates,
                       .outputs_first = is_outputs_first_,
                       .float8 = float8_});
  }

 private:
  // Two products, between which the activation's backward is.
  [[nodiscard]] size_t activated_backward() const {
    const Float8Operands float8 = operands_of_backward(float8_);
    const size_t of_input = scratch_of_matmul(
        in_, out_, weight_, {.transpose_b = !is_outputs_first_, .float8 = float8});
    if (is_frozen_) return of_input;
    return std::max(
        of_input, scratch_of_matmul(dweight_, out_, in_, {.transpose_a = true, .float8 = float8}));
  }

  Tensor in_, out_, weight_, dweight_, dbias_;
  bool is_outputs_first_, float8_, keeps_activated_, is_frozen_;
  ProductInput input_;
};

// The most that a product of a block takes. One is run after the other, in the same memory.
uint64_t product_scratch(const RunPlan& plan) {
  const Architecture& architecture = plan.architecture;
  const std::vector<Op>& ops = plan.step.program.ops;
  const bool recomputes =
      std::ranges::any_of(ops, [](const Op& op) { return op.kind == OpKind::kRecompute; });
  const bool accumulates =
      std::ranges::any_of(ops, [](const Op& op) { return op.gradients.accumulate; });
  const auto lowest = size_t(architecture.lowest_trained_unit());
  size_t most = kProductWorkspaceBytes;
  for (size_t u = 0; u < architecture.units.size(); ++u) {
    const UnitSpec& unit = architecture.units[u];
    if (unit.kind != UnitKind::kBlock) continue;
    for (const TensorSpec& tensor : unit.tensors) {
      if (tensor.shape.size() != 2) continue;
      const MatrixScratch matrix(architecture, tensor, unit.bias_of(tensor),
                                 plan.shape.rows * plan.shape.positions);
      most = std::max(most, matrix.forward());
      if (recomputes) most = std::max(most, matrix.recompute());
      if (u >= lowest) most = std::max(most, matrix.backward(accumulates));
    }
  }
  return most;
}

// At least what a trial of a product takes (kernels/cuda/gemm): where a gradient with that of its
// bias is made in one product and apart, another of both; of a product that adds, another output;
// of a GELU's slope, another argument.
uint64_t largest_trial(const RunPlan& plan, const RunConfig& config) {
  if (config.train.gemm_cache == "off") return 0;
  const Architecture& architecture = plan.architecture;
  const uint64_t tokens = plan.shape.rows * plan.shape.positions;
  uint64_t most = 0;
  for (const UnitSpec& unit : architecture.units)
    for (const TensorSpec& tensor : unit.tensors) {
      if (tensor.shape.size() != 2) continue;
      const uint64_t gradient = tensor.frozen ? 0 : tensor.count() * sizeof(float);
      most = std::max(most, unit.bias_of(tensor) == nullptr ? gradient : 2 * gradient);
      if (unit.kind != UnitKind::kBlock) continue;
      const auto [narrow, wide] = std::minmax(tensor.shape[0], tensor.shape[1]);
      most = std::max(
          {most, tokens * narrow * sizeof(float), tokens * wide * size_of(architecture.compute)});
    }
  return most;
}

// What attention by cuDNN takes, where it may be computed so
// (kernels/cuda/attention/cuda_attention.h).
uint64_t attention_workspace(const RunPlan& plan, const RunConfig& config) {
  const ModelConfig& model = config.model;
  const AttentionShape batch = {.batch = plan.shape.rows,
                                .positions = plan.shape.positions,
                                .heads = size_t(model.heads),
                                .kv_heads = size_t(model.kv_head_count()),
                                .head_size = size_t(model.channels_per_head())};
  if (config.train.attention == AttentionChoice::kOwn) return 0;
  // A window that some layers lack leaves these to cuDNN.
  AttentionScores scores = {.cap = float(model.score_cap)};
  if (model.window_layers == "all" && size_t(model.window) < batch.positions)
    scores.window = size_t(model.window);
  const bool has_documents = config.data.documents == RowDocuments::kApart;
  if (!cudnn_takes(plan.architecture.compute, batch.head_size, scores, has_documents)) return 0;
  const SumOrder order = plan.attends_in_any_order ? SumOrder::kAny : SumOrder::kFixed;
  const std::vector<AttentionSlice> slices =
      attention_slices(batch, most_cudnn_workspace(process_environment()), order);
  return slices.empty() ? 0 : cudnn_workspace_bytes(shape_of(batch, slices.front()), order);
}

}  // namespace

size_t measured_width(bool on_gpu) { return on_gpu ? 4096 : 512; }

DeviceTerms terms_of_device(const RunConfig& config, const RunPlan& plan, bool on_gpu) {
  DeviceTerms terms;
  if (!on_gpu) return terms;
  const uint64_t width = measured_width(on_gpu);
  terms.start_bytes = 3 * width * width * sizeof(float);
  terms.workspace_bytes = std::max(product_scratch(plan), attention_workspace(plan, config));
  terms.reached_bytes = DevicePeers::kSharedBytes;
  terms.holds_collectives = false;
  terms.reserve_bytes = largest_trial(plan, config) + kLibraryBytes;
  return terms;
}

}  // namespace gxp
