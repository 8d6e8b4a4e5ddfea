#include "lib/collective/tune/method_trial.h"

#include <algorithm>

namespace gxp {
namespace {

constexpr int kFirstRounds = 3;
constexpr int kPeriod = 512;            // calls between rounds
constexpr double kClearlySlower = 1.3;  // times the fastest
// A call of less takes a few microseconds, and some calls until it has its place in the caches.
constexpr size_t kSettledBytes = 512 << 10;

}  // namespace

MethodTrial::MethodTrial(const std::vector<SharedMethod>& methods, size_t bytes)
    : in_a_row_(bytes < kSettledBytes ? 4 : 2), first_rounds_(kFirstRounds) {
  for (const SharedMethod method : methods) candidates_.push_back({.method = method});
  start_round();
}

MethodTrial::Turn MethodTrial::turn() const {
  if (round_.empty()) return {fastest(), false};
  const int candidate = round_[size_t(call_ / in_a_row_)];
  return {candidates_[size_t(candidate)].method, call_ % in_a_row_ == in_a_row_ - 1};
}

// What the last call of a round took is known one call later.
void MethodTrial::advance() {
  ++call_;
  if (!round_.empty()) {
    if (call_ == int(round_.size()) * in_a_row_) {
      round_.clear();
      call_ = 0;
    }
  } else if (call_ == (first_rounds_ > 0 ? 1 : kPeriod)) {
    start_round();
  }
}

void MethodTrial::start_round() {
  call_ = 0;
  const bool selects = first_rounds_ > 0 && first_rounds_ < kFirstRounds;
  first_rounds_ = std::max(first_rounds_ - 1, 0);
  for (int i = 0; i < int(candidates_.size()); ++i) {
    const double median = candidates_[size_t(i)].median();
    if (!selects || median <= kClearlySlower * best().median()) round_.push_back(i);
  }
  if (round_.size() < 2) {
    round_.clear();
    first_rounds_ = 0;
  }
}

void MethodTrial::note(SharedMethod method, double seconds_per_byte) {
  const auto candidate = std::ranges::find(candidates_, method, &Candidate::method);
  candidate->last[candidate->noted++ % candidate->last.size()] = seconds_per_byte;
}

const MethodTrial::Candidate& MethodTrial::best() const {
  return *std::ranges::min_element(candidates_, {}, &Candidate::median);
}

bool MethodTrial::is_settled_on(SharedMethod method) const {
  return round_.empty() && fastest() == method;
}

SharedMethod MethodTrial::fastest() const {
  const auto untimed = [](const Candidate& candidate) { return candidate.noted == 0; };
  return std::ranges::any_of(candidates_, untimed) ? candidates_.front().method : best().method;
}

double MethodTrial::Candidate::median() const {
  std::array sorted = last;
  const size_t count = std::min(noted, sorted.size());
  std::sort(sorted.begin(), sorted.begin() + std::ptrdiff_t(count));
  return sorted[(std::max<size_t>(count, 1) - 1) / 2];
}

}  // namespace gxp
