// The sizes of a unit of the model that its kernels' work follows from. kernel_work.cc's own.
#pragma once

#include <algorithm>
#include <vector>

#include "lib/program/run_plan.h"

namespace gxp {

// A matrix of a block with its bias, which comes after it in the unit.
struct LinearWork {
  const TensorSpec* weight = nullptr;
  const TensorSpec* bias = nullptr;  // null: none
  double inputs = 0;
  double outputs = 0;

  // Whether the gradient of the product's output is the stream's.
  [[nodiscard]] bool writes_stream() const { return weight->initial == Initial::kResidualNormal; }
};

// What the kernels of one unit and micro-batch share.
struct UnitWork {
  UnitWork(const RunPlan& plan, int unit);

  [[nodiscard]] const LinearWork& last() const { return linears.back(); }
  [[nodiscard]] bool is_last(const LinearWork& linear) const { return &linear == &last(); }

  const Architecture& architecture;
  const UnitSpec& spec;
  double tokens;
  double positions;
  double hidden;
  double element;  // bytes of a parameter and of products' outputs, and operands unless in 8 bits
  bool float8;     // operands of products
  bool keeps_codes;
  std::vector<LinearWork> linears;
  std::vector<const TensorSpec*> vectors;   // of the norms, without biases
  std::vector<const TensorSpec*> adapters;  // matrices of LoRA, each with a product of its own
  double queries;
  double keys;   // channels; as many values
  bool gated;    // the MLP
  bool rotates;  // queries and keys, by their positions
};

inline UnitWork::UnitWork(const RunPlan& plan, int unit)
    : architecture(plan.architecture),
      spec(plan.architecture.units[size_t(unit)]),
      tokens(double(plan.shape.rows * plan.shape.positions)),
      positions(double(plan.shape.positions)),
      hidden(double(plan.architecture.config.hidden)),
      element(double(size_of(plan.architecture.compute))),
      float8(plan.architecture.float8 && spec.kind == UnitKind::kBlock),
      keeps_codes(plan.shape.keep_codes),
      queries(double(plan.architecture.attention_channels)),
      keys(double(plan.architecture.config.kv_head_count()) *
           double(plan.architecture.config.channels_per_head())),
      gated(plan.architecture.decoder.kind.gated),
      rotates(!plan.architecture.decoder.kind.position_table) {
  for (const TensorSpec& tensor : spec.tensors) {
    if (tensor.adapter) {
      adapters.push_back(&tensor);
    } else if (tensor.shape.size() == 2) {
      const bool turned = !architecture.inputs_first;
      linears.push_back({&tensor, spec.bias_of(tensor), double(tensor.shape[turned ? 1 : 0]),
                         double(tensor.shape[turned ? 0 : 1])});
    } else if (std::ranges::find(linears, &tensor, &LinearWork::bias) == linears.end()) {
      vectors.push_back(&tensor);
    }
  }
}

}  // namespace gxp
