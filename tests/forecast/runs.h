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

// Every strategy, and those that shard with groups of `shard_size` and their replicas: as settings.
inline std::vector<std::vector<std::string>> all_strategies() {
  std::vector<std::vector<std::string>> all;
  for (const Strategy& strategy : strategies())
    all.push_back({fmt::format("parallel.strategy={}", strategy.name)});
  for (const char* name : {"zero1", "zero2", "hybrid_shard", "hybrid_shard_zero2"}) {
    for (const char* over : {"false", "true"})
      all.push_back({fmt::format("parallel.strategy={}", name), "parallel.shard_size=GROUP",
                     fmt::format("parallel.optimizer_over_replicas={}", over)});
  }
  return all;
}

// With the smallest groups that are larger than 1 and divide the ranks, or of 1.
inline std::vector<std::string> with_groups(std::vector<std::string> sets, int world_size) {
  int size = world_size % 2 == 0 ? 2 : 3;
  if (world_size % size != 0 || world_size == size) size = 1;
  for (std::string& set : sets) {
    const size_t place = set.find("GROUP");
    if (place != std::string::npos) set.replace(place, 5, std::to_string(size));
  }
  return sets;
}

// "inproc": messages only. "shm": the ranks of a host see each other's memory.
inline Network network_of(const std::string& transport, int world_size) {
  return {.world_size = world_size,
          .transport = transport,
          .shared_space = transport.starts_with("shm")};
}

}  // namespace gxp
