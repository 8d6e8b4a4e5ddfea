// Dynamic loss scaling for f16, whose gradients vanish below 2^-24 (Micikevicius et al.,
// arXiv:1710.03740), by DeepSpeed's rules: the loss is multiplied by a power of two, gradients are
// divided by it, and a step whose gradients overflow is left out.
#pragma once

#include <cstdint>

#include "lib/config/run_config.h"

namespace gxp {

// The state in a checkpoint.
struct LossScalerState {
  double scale = 1;
  int64_t steps = 0;           // decided so far
  int64_t last_overflow = -1;  // the number of that step, from 0
  int hysteresis = 1;          // overflows that are still tolerated before the scale falls
};

// Pure: the result depends only on the settings and the sequence of update() calls.
class LossScaler {
 public:
  explicit LossScaler(const Fp16Config& config);
  LossScaler(const Fp16Config& config, const LossScalerState& state)
      : config_(config), state_(state) {}

  // The factor of this step's loss.
  [[nodiscard]] double scale() const { return state_.scale; }
  [[nodiscard]] const LossScalerState& state() const { return state_; }
  // After a step, whose gradients overflowed or not. A clean run of fp16.window steps doubles the
  // scale; the fp16.hysteresis-th overflow, and each after it, halves it. False if the scale ought
  // to fall and is at its minimum: training cannot go on.
  [[nodiscard]] bool update(bool overflow);

 private:
  bool fall();
  Fp16Config config_;
  LossScalerState state_;
};

}  // namespace gxp
