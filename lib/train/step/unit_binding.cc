#include "lib/train/step/unit_binding.h"

#include <array>
#include <memory>
#include <utility>

#include "lib/device/mirror.h"

namespace gxp {
namespace {

// One of a unit's tensors, where it lies in the flat buffer of `view`, which has the tensor's part
// of the unit; empty without a view.
Tensor flat_tensor(const RunPlan& plan, const ProgramMemory& memory, const TensorPart& tensor,
                   const FlatView& view) {
  if (view.buffer == kNoBuffer) return {};
  const UnitLayout& layout = plan.layout.units[size_t(tensor.unit)];
  const Range& place = layout.tensors[size_t(tensor.tensor)];
  const size_t in_part = place.begin - layout.part_with(tensor.tensor).flat.begin;
  const UnitSpec& unit = plan.architecture.units[size_t(tensor.unit)];
  return memory.tensor(view.buffer)
      .rows(view.begin + in_part, place.count)
      .reshape(shape_of(unit.tensors[size_t(tensor.tensor)]));
}

void bind_parameters(UnitTensors& t, const RunPlan& plan, const ProgramMemory& memory,
                     const Op& op) {
  const UnitSpec& spec = plan.architecture.units[size_t(op.unit)];
  for (int i = 0; i < int(spec.tensors.size()); ++i) {
    const bool frozen = spec.tensors[size_t(i)].frozen;
    const TensorPart tensor{op.unit, i, {}};
    t.parameters.push_back(
        flat_tensor(plan, memory, tensor, frozen ? op.parameters.frozen : op.parameters.own));
    t.gradients.push_back(frozen ? Tensor() : flat_tensor(plan, memory, tensor, op.gradients.own));
  }
  t.accumulate = op.gradients.accumulate;
  const TensorPart lent{spec.borrows_from, 0, {}};
  t.borrowed = flat_tensor(plan, memory, lent, op.parameters.borrowed);
  t.borrowed_gradient = flat_tensor(plan, memory, lent, op.gradients.borrowed);
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
  t.document_begin = shaped(op.buffers.document_begin, tokens);
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
  using SharedMirror = std::shared_ptr<const Mirror>;  // null: the batch has no such tensor
  const auto mirror = [&](BufferId buffer) {
    return buffer == kNoBuffer ? SharedMirror()
                               : std::make_shared<const Mirror>(lanes.device(), memory.of(buffer));
  };
  const std::array<SharedMirror, 3> mirrors = {
      mirror(op.buffers.tokens), mirror(op.buffers.targets), mirror(op.buffers.document_begin)};
  return [sizes, &compute = lanes[Lane::kCompute], mirrors, fill = std::move(fill)] {
    const auto on_host = [&](const SharedMirror& each) {
      return each == nullptr ? Tensor() : Tensor(each->host(), DType::kI32, sizes);
    };
    fill({on_host(mirrors[0]), on_host(mirrors[1]), on_host(mirrors[2])});
    for (const SharedMirror& each : mirrors)
      if (each != nullptr) each->send(compute);
  };
}

}  // namespace gxp
