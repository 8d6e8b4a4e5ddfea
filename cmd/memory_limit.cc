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
              const MemoryLimit& limit)
      : ranks_(ranks),
        network_(network_of_run(native(config), ranks, environment)),
        limit_(limit) {}

  [[nodiscard]] RunPlan plan(const RunConfig& run) const {
    return limit_.plan(settings_on(run, ranks_), {ranks_.world_size(), ranks_.nnodes});
  }
  [[nodiscard]] DeviceTerms terms(const RunConfig& run, const RunPlan& plan) const {
    return terms_of_device(run, plan, limit_.on_gpu);
  }
  [[nodiscard]] RunMemory memory(const RunPlan& plan, const DeviceTerms& terms) const {
    return memory_of_run(plan, network_, 0, terms);
  }
  [[nodiscard]] MemoryNeed need(const RunMemory& memory, const DeviceTerms& terms) const {
    return {total_of(memory.peak), limit_.is_free ? terms.reserve_bytes : 0};
  }
  [[nodiscard]] MemoryNeed need(const RunConfig& run) const {
    const RunPlan planned = plan(run);
    const DeviceTerms taken = terms(run, planned);
    return need(memory(planned, taken), taken);
  }

 private:
  // Other libraries take no memory of the device's.
  static RunConfig native(RunConfig run) {
    run.comm.engine = "auto";
    return run;
  }

  const PlannedRanks ranks_;
  const Network network_;
  const MemoryLimit limit_;
};

}  // namespace

MemoryNeed check_memory_limit(const RunConfig& config, const PlannedRanks& ranks,
                              const Environment& environment, const MemoryLimit& limit) {
  if (limit.bytes == 0) return {};
  const RankPlanner planner(config, ranks, environment, limit);
  const RunPlan plan = planner.plan(config);
  const DeviceTerms terms = planner.terms(config, plan);
  const RunMemory memory = planner.memory(plan, terms);
  const MemoryNeed need = planner.need(memory, terms);
  if (need.total() <= limit.bytes) return need;
  const std::string reserve =
      need.reserve == 0 ? ""
                        : fmt::format(", {} of it for trials of products and libraries' code",
                                      format_bytes(need.reserve));
  fail(ErrorKind::kConfig,
       "{} {}: a rank of {} needs {}{}, {} more, most of it in {} (largest: {}); {}", limit.source,
       format_bytes(limit.bytes), ranks.world_size(), format_bytes(need.total()), reserve,
       format_bytes(need.total() - limit.bytes), memory.peak_at, largest_at_peak(plan, memory, 4),
       list(runs_that_fit(config, ranks.world_size(), limit.bytes,
                          [&](const RunConfig& other) { return planner.need(other).total(); })));
}

KeepChoice choose_keep(const RunConfig& config, const PlannedRanks& ranks,
                       const Environment& environment, const MemoryLimit& limit,
                       const MemoryNeed& without) {
  if (config.train.keep != KeepSetting::kAuto || config.train.device != TrainDevice::kCuda ||
      limit.bytes == 0)
    return {};
  const RankPlanner planner(config, ranks, environment, limit);
  RunConfig keeping = config;
  keeping.train.keep = KeepSetting::kNorms;
  const uint64_t allowed = config.train.device_memory_bytes;
  const MemoryNeed with_norms = planner.need(keeping);
  return choose_keep(
      {.with_norms = with_norms.peak, .without = without.peak, .reserve = with_norms.reserve},
      allowed > 0 ? std::min(allowed, limit.bytes) : limit.bytes);
}

}  // namespace gxp
