#include "lib/train/unit_binding.h"

#include "lib/zero/flat_tensors.h"

namespace gxp {
namespace {

Tensor bind(const BindingContext& context, BufferId buffer, DType dtype, const Shape& shape) {
  if (buffer == kNoBuffer) return {};
  return {context.memory.of(buffer), dtype, shape};
}

// Frozen tensors have no gradient: theirs are empty.
std::vector<Tensor> gradients_of_trained(const UnitSpec& unit, std::vector<Tensor> gradients) {
  gradients.resize(unit.tensors.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (unit.tensors[i].frozen) gradients[i] = {};
  }
  return gradients;
}

std::vector<Tensor> bind_flat(const BindingContext& context, const std::vector<BufferId>& buffers) {
  std::vector<Tensor> tensors;
  for (const BufferId id : buffers) tensors.push_back(context.memory.tensor(id));
  return tensors;
}

}  // namespace

Tensor tensor_of_wrap(const ParameterLayout& layout, const ProgramMemory& memory, int wrap,
                      const FlatView& view) {
  return memory.tensor(view.buffer).rows(view.begin, layout.wraps[size_t(wrap)].flat.count);
}

Tensor shard_of_wrap(const ParameterLayout& layout, const Tensor& buffer, int wrap, int shards) {
  return FlatShards{ShardPlaces::of_parameters(layout, shards), buffer}.wrap(wrap);
}

UnitTensors bind_unit(const BindingContext& context, const Op& op) {
  const size_t b = context.rows;
  const size_t p = context.positions;
  const auto c = size_t(context.architecture.config.hidden);
  const auto v = size_t(context.architecture.config.vocab_size);
  const int lender = context.architecture.units[size_t(op.unit)].borrows_from;
  UnitTensors t;
  const auto tensors_of = [&](int unit, const FlatView& view) -> std::vector<Tensor> {
    if (view.buffer == kNoBuffer) return {};
    const size_t count = context.layout.units[size_t(unit)].flat.count;
    return unit_tensors(context.architecture, context.layout, unit,
                        context.memory.tensor(view.buffer).rows(view.begin, count));
  };
  t.parameters = tensors_of(op.unit, op.parameters.own);
  t.gradients = gradients_of_trained(context.architecture.units[size_t(op.unit)],
                                     tensors_of(op.unit, op.gradients.own));
  const auto first = [](const std::vector<Tensor>& all) { return all.empty() ? Tensor() : all[0]; };
  t.borrowed = first(tensors_of(lender, op.parameters.borrowed));
  t.borrowed_gradient = first(tensors_of(lender, op.gradients.borrowed));
  t.saved = bind_flat(context, op.buffers.saved);
  t.scratch = bind_flat(context, op.buffers.scratch);
  t.tokens = bind(context, op.buffers.tokens, DType::kI32, {b, p});
  t.targets = bind(context, op.buffers.targets, DType::kI32, {b, p});
  t.losses = bind(context, op.buffers.losses, DType::kF32, {b * p});
  t.input = bind(context, op.buffers.input, DType::kF32, {b, p, c});
  const bool logits = op.kind == OpKind::kLogits;
  t.output = bind(context, op.buffers.output, DType::kF32, logits ? Shape{b, v} : Shape{b, p, c});
  t.stream_gradient = bind(context, op.buffers.stream_gradient, DType::kF32, {b, p, c});
  return t;
}

}  // namespace gxp
