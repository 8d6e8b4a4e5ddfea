#include "lib/train/step/unit_binding.h"

#include <memory>
#include <utility>

#include "lib/device/mirror.h"

namespace gxp {

UnitTensors bind_unit(const RunPlan& plan, const StepShape& shape, const ProgramMemory& memory,
                      const Op& op) {
  const Shape tokens = {shape.rows, shape.positions};
  const Shape stream = {shape.rows, shape.positions, size_t(plan.architecture.config.hidden)};
  const UnitSpec& spec = plan.architecture.units[size_t(op.unit)];
  const auto flat = [&](const std::vector<BufferId>& buffers) {
    std::vector<Tensor> tensors;
    for (const BufferId id : buffers) tensors.push_back(memory.tensor(id));
    return tensors;
  };
  const auto shaped = [&](BufferId id, const Shape& sizes) {
    return id == kNoBuffer ? Tensor() : memory.tensor(id).reshape(sizes);
  };
  const auto tensors_of = [&](int unit, const FlatView& view) {
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
  };
  const auto first = [](const std::vector<Tensor>& all) { return all.empty() ? Tensor() : all[0]; };
  UnitTensors t;
  t.parameters = tensors_of(op.unit, op.parameters.own);
  t.gradients = tensors_of(op.unit, op.gradients.own);
  t.gradients.resize(spec.tensors.size());
  for (size_t i = 0; i < t.gradients.size(); ++i)
    if (spec.tensors[i].frozen) t.gradients[i] = {};  // they have none
  t.borrowed = first(tensors_of(spec.borrows_from, op.parameters.borrowed));
  t.borrowed_gradient = first(tensors_of(spec.borrows_from, op.gradients.borrowed));
  if (op.buffers.codes != kNoBuffer) t.codes = memory.tensor(op.buffers.codes);
  t.makes_codes = op.kind == OpKind::kForward && op.micro == 0;
  if (op.buffers.largest != kNoBuffer) t.largest = memory.tensor(op.buffers.largest);
  t.saved = flat(op.buffers.saved);
  t.scratch = flat(op.buffers.scratch);
  t.tokens = shaped(op.buffers.tokens, tokens);
  t.targets = shaped(op.buffers.targets, tokens);
  t.losses = shaped(op.buffers.losses, {tokens.count()});
  t.input = shaped(op.buffers.input, stream);
  const auto vocabulary = size_t(plan.architecture.config.vocab_size);
  t.output = shaped(op.buffers.output,
                    op.kind == OpKind::kLogits ? Shape{shape.rows, vocabulary} : stream);
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
