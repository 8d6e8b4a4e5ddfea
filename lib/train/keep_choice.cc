#include "lib/train/keep_choice.h"

#include <algorithm>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/log.h"
#include "lib/collective/communicator.h"

namespace gxp {

KeepChoice choose_keep(const KeepPeaks& peaks, uint64_t free_bytes) {
  const uint64_t left = std::min(free_bytes, std::max(free_bytes / 16, peaks.reserve));
  const uint64_t usable = free_bytes - left;
  const bool fits = peaks.with_norms <= usable;
  return {fits,
          fmt::format("{}: a rank needs {} with norms' outputs stored and {} without; it may use "
                      "{} of {} free",
                      fits ? "norms" : "none", format_bytes(peaks.with_norms),
                      format_bytes(peaks.without), format_bytes(usable), format_bytes(free_bytes))};
}

void settle_keep(RunConfig& run, const KeepChoice& mine, Communicator& communicator) {
  if (run.train.keep != KeepSetting::kAuto) return;
  std::vector<uint8_t> norms(size_t(communicator.world_size()));
  norms[size_t(communicator.rank())] = mine.norms;
  communicator.all_gather(memory_of(norms), DType::kU8);
  const auto least = std::ranges::find(norms, 0);
  const bool all_keep = least == norms.end();
  run.train.keep = all_keep ? KeepSetting::kNorms : KeepSetting::kNone;
  if (communicator.rank() != 0 || mine.reason.empty()) return;
  const bool is_own = all_keep || !mine.norms;
  log_info("train.keep auto: {}",
           is_own ? mine.reason
                  : fmt::format("none: rank {} has less memory free", least - norms.begin()));
}

}  // namespace gxp
