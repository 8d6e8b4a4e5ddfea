#include "lib/zero/flat_tensors.h"

namespace gxp {
namespace {

Shape to_shape(const std::vector<size_t>& sizes) {
  GXP_ASSERT(sizes.size() == 1 || sizes.size() == 2);
  return sizes.size() == 1 ? Shape{sizes[0]} : Shape{sizes[0], sizes[1]};
}

}  // namespace

std::vector<Tensor> unit_tensors(const Architecture& architecture, const ParameterLayout& layout,
                                 int unit, Memory memory) {
  const UnitSpec& spec = architecture.units[size_t(unit)];
  const size_t start = layout.units[size_t(unit)].flat.begin;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    const Range& place = layout.units[size_t(unit)].tensors[i];
    const size_t begin = place.begin - start;
    tensors.emplace_back(memory.slice(begin * sizeof(float), place.count * sizeof(float)),
                         DType::kF32, to_shape(spec.tensors[i].shape));
  }
  return tensors;
}

Tensor part_of(const ParameterLayout& layout, const TensorPart& part, Memory buffer, int shards) {
  const size_t begin = begin_in_shard(layout, part, shards);
  return {buffer.slice(begin * sizeof(float), part.elements.count * sizeof(float)), DType::kF32,
          Shape{part.elements.count}};
}

}  // namespace gxp
