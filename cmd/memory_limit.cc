#include "cmd/memory_limit.h"

#include <fmt/format.h>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/forecast/fit.h"
#include "lib/forecast/memory.h"
#include "lib/train/backend.h"

namespace gxp {
namespace {

std::string list(const std::vector<Edit>& edits) {
  if (edits.empty())
    return "no other strategy, micro-batch or offload fits; use more ranks or a smaller model";
  std::string text = "what fits:";
  for (const Edit& edit : edits)
    text += fmt::format("{} {} ({})", &edit == edits.data() ? "" : ";", edit.settings,
                        format_bytes(edit.bytes));
  return text;
}

}  // namespace

void check_memory_limit(const RunConfig& config, const PlannedRanks& ranks,
                        const Environment& environment) {
  const uint64_t limit = config.train.device_memory_bytes;
  if (limit == 0) return;
  RunConfig native = config;
  native.comm.engine = "auto";  // other libraries take no memory of the device's
  const Network network = network_of_run(native, ranks, environment);
  const auto memory_of = [&](const RunConfig& other) {
    return memory_of_run(plan_run(settings_on(other, ranks), ranks.world_size()), network, 0,
                         kMeasuredBytes);
  };
  const auto peak_of = [&](const RunConfig& other) { return total_of(memory_of(other).peak); };
  const RunMemory memory = memory_of(config);
  const uint64_t peak = total_of(memory.peak);
  if (peak <= limit) return;
  fail(ErrorKind::kConfig,
       "train.device_memory_bytes {}: a rank of {} needs {}, {} more, most of it in {}; {}",
       format_bytes(limit), ranks.world_size(), format_bytes(peak), format_bytes(peak - limit),
       memory.peak_at, list(edits_that_fit(config, ranks.world_size(), limit, peak_of)));
}

}  // namespace gxp
