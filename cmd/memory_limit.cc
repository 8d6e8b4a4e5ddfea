#include "cmd/memory_limit.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/replay/memory.h"
#include "lib/replay/run_search.h"

namespace gxp {
namespace {

// "parallel.strategy = "zero3" and train.micro_batch = 2 (80 MiB)"
std::string to_text(const CostedPlan<RunConfig>& run) {
  std::string text;
  for (const ChangedSetting& change : run.changes)
    text += fmt::format("{}{} = {}", text.empty() ? "" : " and ", change.name, change.value);
  return fmt::format("{} ({})", text, format_bytes(run.cost.bytes));
}

std::string list(const std::vector<CostedPlan<RunConfig>>& runs) {
  if (runs.empty())
    return "no other strategy, micro-batch or offload fits; use more ranks or a smaller model";
  std::string text;
  for (const auto& run : runs) text += (text.empty() ? "what fits: " : "; ") + to_text(run);
  return text;
}

// Plans a run's variants, on a device with that limit.
class RankPlanner {
 public:
  RankPlanner(const RunConfig& config, const PlannedRanks& ranks, const Environment& environment,
              bool on_gpu)
      : ranks_(ranks),
        network_(network_of_run(native(config), ranks, environment)),
        on_gpu_(on_gpu) {}

  [[nodiscard]] RunPlan plan(const RunConfig& run) const {
    return plan_run(settings_on(run, ranks_), ranks_.world_size());
  }
  [[nodiscard]] RunMemory memory(const RunConfig& run, const RunPlan& plan) const {
    return memory_of_run(plan, network_, 0, terms_of_device(run, plan, on_gpu_));
  }
  [[nodiscard]] uint64_t peak(const RunConfig& run) const {
    return total_of(memory(run, plan(run)).peak);
  }

 private:
  // Other libraries take no memory of the device's.
  static RunConfig native(RunConfig run) {
    run.comm.engine = "auto";
    return run;
  }

  const PlannedRanks ranks_;
  const Network network_;
  const bool on_gpu_;
};

}  // namespace

uint64_t check_memory_limit(const RunConfig& config, const PlannedRanks& ranks,
                            const Environment& environment, const MemoryLimit& limit) {
  if (limit.bytes == 0) return 0;
  const RankPlanner planner(config, ranks, environment, limit.on_gpu);
  const RunPlan plan = planner.plan(config);
  const RunMemory memory = planner.memory(config, plan);
  const uint64_t peak = total_of(memory.peak);
  if (peak <= limit.bytes) return peak;
  fail(ErrorKind::kConfig,
       "{} {}: a rank of {} needs {}, {} more, most of it in {} (largest: {}); {}", limit.source,
       format_bytes(limit.bytes), ranks.world_size(), format_bytes(peak),
       format_bytes(peak - limit.bytes), memory.peak_at, largest_at_peak(plan, memory, 4),
       list(runs_that_fit(config, ranks.world_size(), limit.bytes,
                          [&](const RunConfig& other) { return planner.peak(other); })));
}

KeepChoice choose_keep(const RunConfig& config, const PlannedRanks& ranks,
                       const Environment& environment, const MemoryLimit& limit, uint64_t peak) {
  if (config.train.keep != "auto" || config.train.device != "cuda" || limit.bytes == 0) return {};
  const RankPlanner planner(config, ranks, environment, limit.on_gpu);
  RunConfig keeping = config;
  keeping.train.keep = "norms";
  const uint64_t allowed = config.train.device_memory_bytes;
  return choose_keep({.with_norms = planner.peak(keeping), .without = peak},
                     allowed > 0 ? std::min(allowed, limit.bytes) : limit.bytes);
}

}  // namespace gxp
