#include "lib/optim/adamw.h"

namespace gxp {
namespace {

template <class Bytes>
auto floats(Bytes memory) {
  return BasicTensor<Bytes>(memory, DType::kF32, Shape{memory.bytes / sizeof(float)});
}

}  // namespace

void AdamW::update(const AdamWRange& range, int64_t step, double lr, double gradient_scale) {
  const double decay = range.decay ? config_.weight_decay : 0.0;
  ops_.adamw(floats(range.weights), floats(range.first), floats(range.second),
             floats(range.gradients),
             {lr, config_.beta1, config_.beta2, config_.eps, decay, step, gradient_scale});
}

}  // namespace gxp
