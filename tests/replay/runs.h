// Small runs, and networks like those of the tests' ranks.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "lib/program/replay.h"
#include "lib/program/run_plan.h"
#include "lib/replay/memory.h"
#include "lib/replay/traffic.h"
#include "tests/train/golden.h"

namespace gxp {

// What keeps gathered parameters, or gathers them early: as settings.
inline const std::vector<std::string> kKeepings = {
    "parallel.prefetch_wraps=3", "parallel.max_live_params=20000", "parallel.persist_params=20000",
    "parallel.reuse_params=30000", "parallel.hold_parameters=true"};

// A model whose step is short, with whatever strategy.
RunConfig small_run(std::vector<std::string> sets, const std::string& folder = "gpt2-accum");

// Every strategy, and those that shard with groups of `shard_size` and their replicas: as settings.
std::vector<std::vector<std::string>> all_strategies();

// With the smallest groups that are larger than 1 and divide the ranks, or of 1.
std::vector<std::string> with_groups(std::vector<std::string> sets, int world_size);

// By rank: the most that the device's tracker counted, what was sent in the last step, and what lay
// outside the device.
struct RunMeasure {
  std::vector<KindBytes> peaks;
  std::vector<uint64_t> sent;
  std::vector<std::array<uint64_t, kStorageCount>> beside;
};

// What two steps take, whose ranks' communicators take their scratch from the devices.
RunMeasure measure_run(const RunConfig& config, int world_size, bool validates = false);

// "inproc": messages only. "shm": the ranks of a host see each other's memory.
Network network_of(const std::string& transport, int world_size);

// What each rank of a run takes and sends is what its plan says, to the byte.
void check_as_planned(const RunConfig& config, int world_size);

}  // namespace gxp
