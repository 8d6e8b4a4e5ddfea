// One inquiry of the store's server: what all ranks are doing, asked in rounds until the answers
// settle who is to blame or time is up. lib/net/store/store_server.h states the rules.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/net/store/verdict.h"

namespace gxp {

class Inquiry {
 public:
  static constexpr std::chrono::milliseconds kTime{500};
  static constexpr std::chrono::milliseconds kPause{50};

  // `suspicion`: what the asking rank itself believes.
  Inquiry(int asked_by, FailureVerdict suspicion)
      : asked_by_(asked_by), suspicion_(std::move(suspicion)) {}

  // Starts a round and returns its number, which the answers carry.
  uint32_t start_round() {
    pause_.reset();
    states_.clear();
    return ++round_;
  }
  void take(int rank, uint32_t round, std::string state) {
    if (round == round_) states_[rank] = std::move(state);
  }
  void forget(int rank) { states_.erase(rank); }
  // To ask again after a while.
  void pause() { pause_ = Deadline::after(kPause); }

  [[nodiscard]] bool is_last() const { return end_.expired(); }
  [[nodiscard]] bool paused() const { return pause_ && !is_last(); }
  [[nodiscard]] bool pause_is_over() const { return pause_ && pause_->expired(); }
  // Whether a conclusion may be drawn, given that `members` ranks can answer.
  [[nodiscard]] bool complete(size_t members) const {
    return is_last() || states_.size() >= members;
  }
  [[nodiscard]] Deadline wake_at() const { return pause_.value_or(end_); }
  [[nodiscard]] int asked_by() const { return asked_by_; }
  [[nodiscard]] const FailureVerdict& suspicion() const { return suspicion_; }
  // Each rank's answer in this round, or that it has left.
  [[nodiscard]] std::vector<RankAnswer> answers(int world_size,
                                                const std::set<int>& departed) const {
    std::vector<RankAnswer> answers(static_cast<size_t>(world_size));
    for (const int rank : departed) answers[size_t(rank)].kind = RankAnswer::Kind::kLeft;
    for (const auto& [rank, state] : states_)
      answers[size_t(rank)] = {RankAnswer::Kind::kState, state};
    return answers;
  }

 private:
  int asked_by_;
  FailureVerdict suspicion_;
  Deadline end_ = Deadline::after(kTime);
  uint32_t round_ = 0;
  std::map<int, std::string> states_;  // by rank, of this round
  std::optional<Deadline> pause_;      // between two rounds
};

}  // namespace gxp
