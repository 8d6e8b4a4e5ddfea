// Which rank is the first cause of a failure, from what the ranks' connections and reports say.
// Pure: no clock, no socket. lib/net/store/store_server.h states the rules.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "lib/net/store/verdict.h"

namespace gxp {

class BlameTracker {
 public:
  // The connection of `rank` ended without goodbye. This is no evidence against a rank that has
  // accused another: it probably ended because of that.
  void lost(int rank, std::string reason) {
    if (!accusations_.contains(rank)) settle({rank, std::move(reason)});
  }

  void report(int reporter, int culprit, std::string reason) {
    if (reporter == culprit) return settle({culprit, std::move(reason)});
    if (accusations_.empty()) first_reporter_ = reporter;
    accusations_.try_emplace(reporter, FailureVerdict{culprit, std::move(reason)});
  }

  // An accusation waits for better evidence.
  [[nodiscard]] bool pending() const { return !verdict_ && !accusations_.empty(); }

  // The best evidence so far becomes the verdict: starting from the first accusation, an accused
  // rank that has itself accused another passes the blame on to it, until the chain ends or closes
  // in a circle.
  void decide() {
    if (!pending()) return;
    FailureVerdict best = accusations_.at(first_reporter_);
    for (size_t steps = 0; steps < accusations_.size(); ++steps) {
      const auto next = accusations_.find(best.rank);
      if (next == accusations_.end()) break;
      best = next->second;
    }
    settle(std::move(best));
  }

  [[nodiscard]] const std::optional<FailureVerdict>& verdict() const { return verdict_; }

 private:
  void settle(FailureVerdict verdict) {
    if (!verdict_) verdict_ = std::move(verdict);
  }

  std::map<int, FailureVerdict> accusations_;  // by reporter, each rank's first
  int first_reporter_ = -1;
  std::optional<FailureVerdict> verdict_;
};

}  // namespace gxp
