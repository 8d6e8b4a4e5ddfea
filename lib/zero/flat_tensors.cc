#include "lib/zero/flat_tensors.h"

namespace gxp {
namespace {

Shape to_shape(const std::vector<size_t>& sizes) {
  GXP_ASSERT(sizes.size() == 1 || sizes.size() == 2);
  return sizes.size() == 1 ? Shape{sizes[0]} : Shape{sizes[0], sizes[1]};
}

}  // namespace

std::vector<Tensor> unit_tensors(const Architecture& architecture, const ParameterLayout& layout,
                                 int unit, const Tensor& flat) {
  const UnitSpec& spec = architecture.units[size_t(unit)];
  const size_t start = layout.units[size_t(unit)].flat.begin;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    const Range& place = layout.units[size_t(unit)].tensors[i];
    const size_t begin = place.begin - start;
    tensors.push_back(flat.rows(begin, place.count).reshape(to_shape(spec.tensors[i].shape)));
  }
  return tensors;
}

}  // namespace gxp
