#include "lib/train/unit_binding.h"

#include <memory>
#include <utility>

#include "lib/device/mirror.h"
#include "lib/zero/flat_tensors.h"

namespace gxp {
namespace {

Tensor bind(const ProgramMemory& memory, BufferId buffer, DType dtype, const Shape& shape) {
  if (buffer == kNoBuffer) return {};
  return {memory.of(buffer), dtype, shape};
}

// Frozen tensors have no gradient: theirs are empty.
std::vector<Tensor> gradients_of_trained(const UnitSpec& unit, std::vector<Tensor> gradients) {
  gradients.resize(unit.tensors.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (unit.tensors[i].frozen) gradients[i] = {};
  }
  return gradients;
}

std::vector<Tensor> bind_flat(const ProgramMemory& memory, const std::vector<BufferId>& buffers) {
  std::vector<Tensor> tensors;
  for (const BufferId id : buffers) tensors.push_back(memory.tensor(id));
  return tensors;
}

}  // namespace

UnitTensors bind_unit(const RunPlan& plan, const StepShape& shape, const ProgramMemory& memory,
                      const Op& op) {
  const size_t b = shape.rows;
  const size_t p = shape.positions;
  const auto c = size_t(plan.architecture.config.hidden);
  const auto v = size_t(plan.architecture.config.vocab_size);
  const UnitSpec& spec = plan.architecture.units[size_t(op.unit)];
  UnitTensors t;
  const auto tensors_of = [&](int unit, const FlatView& view) -> std::vector<Tensor> {
    if (view.buffer == kNoBuffer) return {};
    const size_t count = plan.layout.units[size_t(unit)].flat.count;
    return unit_tensors(plan.architecture, plan.layout, unit,
                        memory.tensor(view.buffer).rows(view.begin, count));
  };
  t.parameters = tensors_of(op.unit, op.parameters.own);
  t.gradients = gradients_of_trained(spec, tensors_of(op.unit, op.gradients.own));
  const auto first = [](const std::vector<Tensor>& all) { return all.empty() ? Tensor() : all[0]; };
  t.borrowed = first(tensors_of(spec.borrows_from, op.parameters.borrowed));
  t.borrowed_gradient = first(tensors_of(spec.borrows_from, op.gradients.borrowed));
  t.saved = bind_flat(memory, op.buffers.saved);
  t.scratch = bind_flat(memory, op.buffers.scratch);
  t.tokens = bind(memory, op.buffers.tokens, DType::kI32, {b, p});
  t.targets = bind(memory, op.buffers.targets, DType::kI32, {b, p});
  t.losses = bind(memory, op.buffers.losses, DType::kF32, {b * p});
  t.input = bind(memory, op.buffers.input, DType::kF32, {b, p, c});
  const bool logits = op.kind == OpKind::kLogits;
  t.output = bind(memory, op.buffers.output, DType::kF32, logits ? Shape{b, v} : Shape{b, p, c});
  t.stream_gradient = bind(memory, op.buffers.stream_gradient, DType::kF32, {b, p, c});
  return t;
}

std::function<void()> bind_next_batch(Lanes& lanes, const ProgramMemory& memory,
                                      const StepShape& shape, const Op& op, FillBatch fill) {
  const Shape sizes{shape.rows, shape.positions};
  // Each operation has mirrors of its own, so that none is written again before the step's end,
  // while the device may still copy it. Shared by the function's copies.
  const auto mirror = [&](BufferId buffer) {
    return std::make_shared<const Mirror>(lanes.device(), memory.of(buffer));
  };
  return [sizes, &compute = lanes[Lane::kCompute], tokens = mirror(op.buffers.tokens),
          targets = mirror(op.buffers.targets), fill = std::move(fill)] {
    fill({tokens->host(), DType::kI32, sizes}, {targets->host(), DType::kI32, sizes});
    tokens->send(compute);
    targets->send(compute);
  };
}

}  // namespace gxp
