// Small runs, and networks like those of the tests' ranks.
#pragma once

#include <string>
#include <vector>

#include "lib/forecast/traffic.h"
#include "tests/train/golden.h"

namespace gxp {

// A GPT-2 whose step is short, with whatever strategy.
inline RunConfig small_run(std::vector<std::string> sets) {
  for (const char* set : {"train.steps=2", "train.micro_batch=1"}) sets.insert(sets.begin(), set);
  RunConfig config = golden_config("gpt2-accum", 1, sets);
  config.model.init = "normal";
  return config;
}

inline std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Strategy& strategy : strategies()) names.emplace_back(strategy.name);
  return names;
}

// "inproc": messages only. "shm": the ranks see each other's memory.
inline Network network_of(const std::string& transport, int world_size) {
  return {.world_size = world_size, .transport = transport, .shared_space = transport == "shm"};
}

}  // namespace gxp
