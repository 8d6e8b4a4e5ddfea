// Step programs of a small model, for tests.
#pragma once

#include "lib/program/build.h"

namespace gxp {

inline Architecture sample_architecture(int vocab_size = 61) {
  ModelConfig config;
  config.vocab_size = vocab_size;
  config.context = 24;
  config.hidden = 32;
  config.layers = 3;
  config.heads = 4;
  return make_architecture(config);
}

inline BuiltStep sample_step(int world_size, int grad_accum, uint64_t bucket_bytes) {
  const Architecture architecture = sample_architecture();
  const StepShape shape{.rows = 2,
                        .positions = 20,
                        .grad_accum = grad_accum,
                        .world_size = world_size,
                        .bucket_bytes = bucket_bytes};
  return build_train_step(architecture, make_layout(architecture, world_size), find_strategy("ddp"),
                          shape);
}

}  // namespace gxp
