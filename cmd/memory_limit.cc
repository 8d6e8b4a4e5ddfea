#include "cmd/memory_limit.h"

#include <fmt/format.h>

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

}  // namespace

void check_memory_limit(const RunConfig& config, const PlannedRanks& ranks,
                        const Environment& environment, const MemoryLimit& limit) {
  if (limit.bytes == 0) return;
  RunConfig native = config;
  native.comm.engine = "auto";  // other libraries take no memory of the device's
  const Network network = network_of_run(native, ranks, environment);
  const auto memory_of = [&](const RunConfig& other, const RunPlan& plan) {
    return memory_of_run(plan, network, 0, terms_of_device(other, plan, limit.on_gpu));
  };
  const auto plan_of = [&](const RunConfig& other) {
    return plan_run(settings_on(other, ranks), ranks.world_size());
  };
  const auto peak_of = [&](const RunConfig& other) {
    return total_of(memory_of(other, plan_of(other)).peak);
  };
  const RunPlan plan = plan_of(config);
  const RunMemory memory = memory_of(config, plan);
  const uint64_t peak = total_of(memory.peak);
  if (peak <= limit.bytes) return;
  fail(ErrorKind::kConfig,
       "{} {}: a rank of {} needs {}, {} more, most of it in {} (largest: {}); {}", limit.source,
       format_bytes(limit.bytes), ranks.world_size(), format_bytes(peak),
       format_bytes(peak - limit.bytes), memory.peak_at, largest_at_peak(plan, memory, 4),
       list(runs_that_fit(config, ranks.world_size(), limit.bytes, peak_of)));
}

}  // namespace gxp
