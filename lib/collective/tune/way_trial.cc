#include "lib/collective/tune/way_trial.h"

#include <algorithm>

namespace gxp {

WayTrial::WayTrial(const std::vector<SharedWay>& ways) {
  for (const SharedWay way : ways) candidates_.push_back({.way = way});
}

WayTrial::Turn WayTrial::turn() const {
  const auto round = uint32_t(kInARow * candidates_.size());
  const uint32_t at = calls_ < kFirstRounds * round ? calls_ % round : calls_ % kPeriod;
  if (at >= round) return {fastest(), false};
  return {candidates_[at / kInARow].way, at % kInARow == kInARow - 1};
}

void WayTrial::note(SharedWay way, double seconds_per_byte) {
  const auto candidate = std::ranges::find(candidates_, way, &Candidate::way);
  candidate->last[candidate->noted++ % candidate->last.size()] = seconds_per_byte;
}

SharedWay WayTrial::fastest() const {
  const auto untimed = [](const Candidate& candidate) { return candidate.noted == 0; };
  if (std::ranges::any_of(candidates_, untimed)) return candidates_.front().way;
  return std::ranges::min_element(candidates_, {}, &Candidate::median)->way;
}

double WayTrial::Candidate::median() const {
  std::array sorted = last;
  const size_t count = std::min(noted, sorted.size());
  std::sort(sorted.begin(), sorted.begin() + std::ptrdiff_t(count));
  return sorted[count / 2];
}

}  // namespace gxp
