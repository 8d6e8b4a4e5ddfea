// Whether a run fits into its device, and which optional memory it keeps there.
#pragma once

#include <cstdint>
#include <string>

#include "cmd/run_network.h"
#include "lib/base/environment.h"
#include "lib/config/run_config.h"
#include "lib/program/run_plan.h"
#include "lib/train/keep_choice.h"

namespace gxp {

struct MemoryLimit {
  uint64_t bytes = 0;  // of a rank; 0: none
  std::string source;  // "train.device_memory_bytes", "free on cuda:0"
  bool on_gpu = false;
  bool is_free = false;  // all that there is: the reserve of DeviceTerms must fit, too
  RunPlan (*plan)(const RunConfig& run, const RanksOnHosts& ranks) = plan_run;
};

// The device memory that a rank needs: its planned peak, plus the reserve if the limit includes it.
struct MemoryNeed {
  uint64_t peak = 0;
  uint64_t reserve = 0;
  [[nodiscard]] uint64_t total() const { return peak + reserve; }
};

// Throws kConfig if the run needs more than the limit: by how much, where its peak is, what is
// largest there, and which changes of settings would make it fit. Returns the need; nothing without
// a limit.
MemoryNeed check_memory_limit(const RunConfig& config, const PlannedRanks& ranks,
                              const Environment& environment, const MemoryLimit& limit);

// For a run with train.keep = "auto" on a GPU with that limit; else nothing is kept. `without`:
// what check_memory_limit() has returned.
KeepChoice choose_keep(const RunConfig& config, const PlannedRanks& ranks,
                       const Environment& environment, const MemoryLimit& limit,
                       const MemoryNeed& without);

}  // namespace gxp
