#include "lib/arch/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gxp {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

Rotary unscaled(int channels, double theta) {
  Rotary rotary;
  for (int i = 0; i < channels / 2; ++i)
    rotary.frequencies.push_back(std::pow(theta, -2.0 * i / channels));
  return rotary;
}

double original_context(const ModelConfig& model) {
  return model.rope_original_context > 0 ? model.rope_original_context : model.context;
}

void scale_llama3(const ModelConfig& model, Rotary& rotary) {
  const double low = model.rope_low_freq_factor;
  const double high = model.rope_high_freq_factor;
  for (double& frequency : rotary.frequencies) {
    const double turns = original_context(model) * frequency / kTurn;
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    frequency = (1 - kept) * frequency / model.rope_factor + kept * frequency;
  }
}

// The channel, with a fraction, that turns so many times within the original context.
double channel_of(double turns, const ModelConfig& model) {
  return turning_channels(model) * std::log(original_context(model) / (kTurn * turns)) /
         (2 * std::log(model.rope_theta));
}

void scale_yarn(const ModelConfig& model, Rotary& rotary) {
  double first = channel_of(model.rope_beta_fast, model);
  double last = channel_of(model.rope_beta_slow, model);
  if (model.rope_truncate) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, double(turning_channels(model) - 1));
  if (first == last) last += 0.001;
  for (size_t i = 0; i < rotary.frequencies.size(); ++i) {
    const double scaled = std::clamp((double(i) - first) / (last - first), 0.0, 1.0);
    double& frequency = rotary.frequencies[i];
    frequency = frequency / model.rope_factor * scaled + frequency * (1 - scaled);
  }
  rotary.factor = model.rope_attention_factor > 0 ? model.rope_attention_factor
                  : model.rope_factor > 1         ? 0.1 * std::log(model.rope_factor) + 1
                                                  : 1;
}

}  // namespace

int turning_channels(const ModelConfig& model) {
  return int(double(model.channels_per_head()) * model.rope_partial);
}

Rotary make_rotary(const ModelConfig& model) {
  Rotary rotary = unscaled(turning_channels(model), model.rope_theta);
  switch (model.rope_scaling) {
    case RopeScaling::kNone:
      break;
    case RopeScaling::kLinear:
      for (double& frequency : rotary.frequencies) frequency /= model.rope_factor;
      break;
    case RopeScaling::kLlama3:
      scale_llama3(model, rotary);
      break;
    case RopeScaling::kYarn:
      scale_yarn(model, rotary);
      break;
  }
  return rotary;
}

Rotary make_local_rotary(const ModelConfig& model) {
  return unscaled(turning_channels(model), model.rope_local_theta);
}

}  // namespace gxp
