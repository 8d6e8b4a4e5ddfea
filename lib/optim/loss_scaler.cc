#include "lib/optim/loss_scaler.h"

#include <algorithm>
#include <cmath>

namespace gxp {

LossScaler::LossScaler(const Fp16Config& config)
    : LossScaler(config, {.scale = std::exp2(config.initial_scale_power),
                          .hysteresis = config.hysteresis}) {}

bool LossScaler::update(bool overflow) {
  const int64_t step = state_.steps++;
  if (overflow) {
    state_.last_overflow = step;
    return fall();
  }
  if (config_.consecutive_hysteresis) state_.hysteresis = config_.hysteresis;
  const int64_t clean = step - state_.last_overflow - 1;  // steps before this one
  if (clean > 0 && clean % config_.window == 0) {
    state_.hysteresis = config_.hysteresis;
    state_.scale *= 2;
  }
  return true;
}

bool LossScaler::fall() {
  if (state_.hysteresis > 1) {
    --state_.hysteresis;
    return true;
  }
  if (state_.scale <= config_.min_scale) return false;
  state_.scale = std::max(state_.scale / 2, config_.min_scale);
  return true;
}

}  // namespace gxp
