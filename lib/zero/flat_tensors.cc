#include "lib/zero/flat_tensors.h"

namespace gxp {
namespace {

Shape to_shape(const std::vector<size_t>& sizes) {
  GXP_ASSERT(sizes.size() == 1 || sizes.size() == 2);
  return sizes.size() == 1 ? Shape{sizes[0]} : Shape{sizes[0], sizes[1]};
}

}  // namespace

std::vector<Tensor> unit_tensors(const Architecture& architecture, const ParameterLayout& layout,
                                 int unit, Memory flat) {
  const UnitSpec& spec = architecture.units[size_t(unit)];
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    const Range& place = layout.units[size_t(unit)].tensors[i];
    const Memory memory = flat.slice(place.begin * sizeof(float), place.count * sizeof(float));
    tensors.emplace_back(memory, DType::kF32, to_shape(spec.tensors[i].shape));
  }
  return tensors;
}

std::vector<Tensor> all_tensors(const Architecture& architecture, const ParameterLayout& layout,
                                Memory flat) {
  std::vector<Tensor> tensors;
  for (size_t unit = 0; unit < architecture.units.size(); ++unit) {
    for (const Tensor& tensor : unit_tensors(architecture, layout, int(unit), flat))
      tensors.push_back(tensor);
  }
  return tensors;
}

}  // namespace gxp
