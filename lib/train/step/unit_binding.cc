#include "lib/train/step/unit_binding.h"

#include <memory>
#include <utility>

#include "lib/device/mirror.h"

namespace gxp {
namespace {

// A unit's parameters or gradients, where they lie in the flat buffer of `view`; none without one.
std::vector<Tensor> flat_tensors(const RunPlan& plan, const ProgramMemory& memory, int unit,
                                 const FlatView& view) {
  std::vector<Tensor> tensors;
  if (view.buffer == kNoBuffer) return tensors;
  const Tensor buffer = memory.tensor(view.buffer);
  const UnitLayout& layout = plan.layout.units[size_t(unit)];
  for (const TensorSpec& tensor : plan.architecture.units[size_t(unit)].tensors) {
    const Range& place = layout.tensors[tensors.size()];
    tensors.push_back(buffer.rows(view.begin + place.begin - layout.flat.begin, place.count)
                          .reshape(shape_of(tensor)));
  }
  return tensors;
}

Tensor first_or_empty(const std::vector<Tensor>& tensors) {
  return tensors.empty() ? Tensor() : tensors[0];
}

void bind_parameters(UnitTensors& t, const RunPlan& plan, const ProgramMemory& memory,
                     const Op& op) {
  const UnitSpec& spec = plan.architecture.units[size_t(op.unit)];
  t.parameters = flat_tensors(plan, memory, op.unit, op.parameters.own);
  t.gradients = flat_tensors(plan, memory, op.unit, op.gradients.own);
  t.gradients.resize(spec.tensors.size());
  for (size_t i = 0; i < t.gradients.size(); ++i)
    if (spec.tensors[i].frozen) t.gradients[i] = {};  // they have none
  t.accumulate = op.gradients.accumulate;
  t.borrowed =
      first_or_empty(flat_tensors(plan, memory, spec.borrows_from, op.parameters.borrowed));
  t.borrowed_gradient =
      first_or_empty(flat_tensors(plan, memory, spec.borrows_from, op.gradients.borrowed));
}

}  // namespace

UnitTensors bind_unit(const RunPlan& plan, const StepShape& shape, const ProgramMemory& memory,
                      const Op& op) {
  const Shape tokens = {shape.rows, shape.positions};
  const Shape stream = {shape.rows, shape.positions, size_t(plan.architecture.config.hidden)};
  const Shape logits = {shape.rows, size_t(plan.architecture.config.vocab_size)};
  const auto all = [&](const std::vector<BufferId>& buffers) {
    std::vector<Tensor> tensors;
    for (const BufferId id : buffers) tensors.push_back(memory.tensor(id));
    return tensors;
  };
  const auto shaped = [&](BufferId id, const Shape& sizes) {
    return id == kNoBuffer ? Tensor() : memory.tensor(id).reshape(sizes);
  };
  UnitTensors t;
  bind_parameters(t, plan, memory, op);
  if (op.buffers.codes != kNoBuffer) t.codes = memory.tensor(op.buffers.codes);
  t.makes_codes = op.kind == OpKind::kForward && op.micro == 0;
  if (op.buffers.largest != kNoBuffer) t.largest = memory.tensor(op.buffers.largest);
  t.saved = all(op.buffers.saved);
  t.scratch = all(op.buffers.scratch);
  t.tokens = shaped(op.buffers.tokens, tokens);
  t.targets = shaped(op.buffers.targets, tokens);
  t.losses = shaped(op.buffers.losses, {tokens.count()});
  t.input = shaped(op.buffers.input, stream);
  t.output = shaped(op.buffers.output, op.kind == OpKind::kLogits ? logits : stream);
  t.stream_gradient = shaped(op.buffers.stream_gradient, stream);
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
