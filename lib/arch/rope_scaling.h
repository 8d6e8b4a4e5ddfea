// The frequencies of rotary positions by the settings [model]. Pure.
// Source: transformers 5.24, modeling_rope_utils.py; YaRN: Peng et al., arXiv:2309.00071.
#pragma once

#include "lib/arch/model_config.h"
#include "lib/base/decoder/rotary.h"

namespace gxp {

// The channels of a head that turn.
int turning_channels(const ModelConfig& model);

// Of the layers that see all positions: rope_theta, scaled as rope_scaling says.
Rotary make_rotary(const ModelConfig& model);
// Of layers with a window, in families with rope_local_theta: that base, without scaling.
Rotary make_local_rotary(const ModelConfig& model);

}  // namespace gxp
