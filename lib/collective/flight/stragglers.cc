#include "lib/collective/flight/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace gxp {
namespace {

// What is compared of one operation: a rank's place in the input, and when it came, in seconds
// behind any moment that is the same for all ranks.
using Arrivals = std::vector<std::pair<size_t, double>>;

class Tally {
 public:
  explicit Tally(const std::vector<int>& ranks) : lateness_(ranks.size()), last_(ranks.size()) {
    for (const int rank : ranks) ranking_.ranks.push_back({.rank = rank});
  }

  void add(const Arrivals& arrivals) {
    const auto by_time = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto [first, last] = std::minmax_element(arrivals.begin(), arrivals.end(), by_time);
    for (const auto& [at, seconds] : arrivals) lateness_[at].push_back(seconds - first->second);
    if (last->second > first->second) ++last_[last->first];
  }

  StragglerRanking finish(bool by_duration) && {
    ranking_.by_duration = by_duration;
    for (size_t at = 0; at < lateness_.size(); ++at) {
      std::vector<double>& lateness = lateness_[at];
      Straggler& rank = ranking_.ranks[at];
      rank.operations = lateness.size();
      rank.last = last_[at];
      if (lateness.empty()) continue;
      std::sort(lateness.begin(), lateness.end());
      rank.median_s = lateness[lateness.size() / 2];
      rank.p99_s = lateness[lateness.size() * 99 / 100];
    }
    std::stable_sort(ranking_.ranks.begin(), ranking_.ranks.end(),
                     [](const auto& a, const auto& b) {
                       return std::tie(a.last, a.median_s) > std::tie(b.last, b.median_s);
                     });
    return std::move(ranking_);
  }

 private:
  StragglerRanking ranking_;
  std::vector<std::vector<double>> lateness_;
  std::vector<size_t> last_;
};

bool all_leave_together(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kAllGather ||
         collective == Collective::kBarrier;
}

// When a rank came to an operation, in seconds; nothing where the record does not say.
std::optional<double> arrival(const FlightEntry& entry, bool by_duration) {
  if (!entry.entered_exactly) return std::nullopt;
  if (!by_duration) return double(entry.entered_ns) / 1e9;
  if (entry.state != FlightEntry::State::kDone || !entry.left_exactly ||
      !all_leave_together(std::get<Call>(entry.call).collective))
    return std::nullopt;
  return -double(entry.left_ns - entry.entered_ns) / 1e9;
}

using Operation = std::tuple<int, int, uint32_t>;  // group, leader, sequence

}  // namespace

StragglerRanking rank_stragglers(std::span<const FlightRecord> records) {
  bool by_duration = false;
  std::vector<int> ranks;
  std::map<Operation, Arrivals> operations;
  for (const FlightRecord& record : records) {
    ranks.push_back(record.rank);
    by_duration |= record.host != records.front().host;
  }
  std::map<Operation, size_t> sizes;
  for (size_t at = 0; at < records.size(); ++at) {
    for (const FlightEntry& entry : records[at].entries) {
      const Call* call = std::get_if<Call>(&entry.call);
      const auto group = records[at].groups.find(entry.group);
      if (call == nullptr || group == records[at].groups.end() ||
          entry.number < group->second.since)
        continue;
      const auto seconds = arrival(entry, by_duration);
      const Operation operation{entry.group, entry.leader, call->sequence};
      sizes[operation] = size_t(group->second.size);
      if (seconds) operations[operation].emplace_back(at, *seconds);
    }
  }
  Tally tally(ranks);
  for (const auto& [operation, arrivals] : operations) {
    if (arrivals.size() == sizes[operation]) tally.add(arrivals);
  }
  return std::move(tally).finish(by_duration);
}

std::string to_text(const StragglerRanking& ranking) {
  std::string text;
  for (const Straggler& rank : ranking.ranks)
    text +=
        fmt::format("rank {}: last in {} of {}, late by {:.3g} ms (median), {:.3g} ms (p99)\n",
                    rank.rank, rank.last, rank.operations, 1e3 * rank.median_s, 1e3 * rank.p99_s);
  if (ranking.by_duration)
    text += "on several hosts: lateness is the time that others stayed longer\n";
  return text;
}

}  // namespace gxp
