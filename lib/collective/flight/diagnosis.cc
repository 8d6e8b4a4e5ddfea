#include "lib/collective/flight/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/collective/flight/wait_graph.h"
#include "lib/net/store/rank_list.h"

namespace gxp {
namespace {

constexpr size_t kShownWaits = 16;

// "broadcast 17 (16 u8 from rank 0)" -> the ranks that called it.
using Camps = std::vector<std::pair<const FlightEntry*, std::vector<int>>>;

bool same_call(const FlightEntry& a, const FlightEntry& b) {
  const Call* x = std::get_if<Call>(&a.call);
  const Call* y = std::get_if<Call>(&b.call);
  return std::tie(x->collective, x->dtype, x->op, x->count, x->root, a.algorithm) ==
         std::tie(y->collective, y->dtype, y->op, y->count, y->root, b.algorithm);
}

// The largest first; of equal ones the one with the lowest rank.
Camps camps_of(const WaitGraph& ranks, const FlightEntry& operation) {
  Camps camps;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const FlightEntry* entry = ranks.entry_in(rank, operation);
    if (entry == nullptr) continue;
    auto camp = std::find_if(camps.begin(), camps.end(),
                             [&](const auto& other) { return same_call(*other.first, *entry); });
    if (camp == camps.end()) camp = camps.insert(camps.end(), {entry, {}});
    camp->second.push_back(rank);
  }
  std::stable_sort(camps.begin(), camps.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  return camps;
}

std::string describe_camps(const Camps& camps, int culprit) {
  std::set<std::string> said;
  for (const auto& [entry, _] : camps) said.insert(describe(*entry));
  const bool alike = said.size() < camps.size();  // only the algorithm tells them apart
  std::string text;
  for (size_t i = camps.size(); i-- > 0;) {
    const auto& [entry, ranks] = camps[i];
    std::vector<int> others = ranks;
    const bool blamed = std::erase(others, culprit) > 0;
    const std::string who = !blamed          ? to_text(others)
                            : others.empty() ? "it"
                                             : "it and " + to_text(others);
    text += fmt::format("{}{} called {}{}", text.empty() ? "" : "; ", who, describe(*entry),
                        alike ? " by " + entry->algorithm : "");
  }
  return text;
}

// Ranks that have called different things under one number.
std::optional<Finding> find_mismatch(const WaitGraph& ranks) {
  std::vector<const FlightEntry*> seen;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const FlightEntry* operation = ranks.running(rank);
    const auto same = [&](const FlightEntry* other) { return same_operation(*other, *operation); };
    if (operation == nullptr || !is_collective(*operation) ||
        std::any_of(seen.begin(), seen.end(), same))
      continue;
    seen.push_back(operation);
    const Camps camps = camps_of(ranks, *operation);
    if (camps.size() < 2) continue;
    const bool tied = camps[0].second.size() == camps[1].second.size();
    const bool more_to_come =
        !ranks.of_kind(RankAnswer::Kind::kState, ranks.absent_from(*operation)).empty();
    // The last camp is told first: it holds the culprit.
    const int culprit = camps.back().second.front();
    return Finding{{culprit, describe_camps(camps, culprit)}, !(tied && more_to_come)};
  }
  return std::nullopt;
}

std::string age(double seconds) { return fmt::format("{:.1f} s", seconds); }

std::string describe_sized(const FlightEntry& entry) {
  const Call* call = std::get_if<Call>(&entry.call);
  if (call == nullptr || call->count == 0) return describe(entry);
  return fmt::format("{}, {}", describe(entry), format_bytes(call->count * size_of(call->dtype)));
}

// "rank 1 in step 2 for rank 3"
std::string describe_wait(const FlightEntry& entry, int rank) {
  std::string text = fmt::format("rank {}", rank);
  if (entry.step >= 0) text += fmt::format(" in step {}", entry.step);
  if (entry.waits_for >= 0) text += fmt::format(" for rank {}", entry.waits_for);
  return text;
}

std::string last_of(const WaitGraph& ranks, int rank) {
  return "its last operation: " + describe_last(*ranks.record(rank));
}

// Why `culprit`, for whom `operation` waits, is to blame: it waits for nobody.
std::string headline(const WaitGraph& ranks, int culprit, const FlightEntry& operation,
                     int waiting) {
  const std::string what = describe_sized(operation);
  if (ranks.kind(culprit) == RankAnswer::Kind::kSilent)
    return fmt::format(
        "it does not respond, its process may be stopped, or its host out of reach; needed for {}",
        what);
  if (ranks.kind(culprit) == RankAnswer::Kind::kLeft)
    return fmt::format("it has left the job normally; needed for {}", what);
  if (ranks.record(culprit) == nullptr)
    return fmt::format("it does not report its state; needed for {}", what);
  const FlightEntry* own = ranks.running(culprit);
  if (own != nullptr && same_operation(*own, operation))
    return fmt::format("it waits for nobody, but does not finish its part of {}; {}", what,
                       last_of(ranks, culprit));
  if (!is_collective(operation))
    return fmt::format("rank {} waits for it in {}; {}", waiting, what, last_of(ranks, culprit));
  const FlightEntry* before = ranks.entry_in(culprit, operation);
  if (before != nullptr && before->state == FlightEntry::State::kFailed)
    return fmt::format("it has failed in {}, where rank {} waits for it", what, waiting);
  if (ranks.has_entered(culprit, operation))
    return fmt::format(
        "it has done its part of {}, yet rank {} waits for it, a message may be lost; {}", what,
        waiting, last_of(ranks, culprit));
  return fmt::format("it has not entered {}; {}", what, last_of(ranks, culprit));
}

// Which other ranks are missing, and in which operations ranks wait.
std::string describe_others(const WaitGraph& ranks, int culprit, const FlightEntry& operation) {
  std::string text;
  std::vector<int> absent = ranks.absent_from(operation);
  std::erase(absent, culprit);
  std::vector<int> silent = ranks.of_kind(RankAnswer::Kind::kSilent, absent);
  for (const int rank : silent) std::erase(absent, rank);
  if (!absent.empty()) text += fmt::format("; {}: not in it either", to_text(absent));
  if (!silent.empty()) text += fmt::format("; {}: no response either", to_text(silent));
  std::vector<std::string> waits;
  double longest = 0;
  size_t more = 0;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const FlightEntry* entry = ranks.running(rank);
    if (entry == nullptr || rank == culprit) continue;
    longest = std::max(longest, ranks.running_s(rank));
    if (waits.size() == kShownWaits) {
      ++more;
      continue;
    }
    const bool elsewhere = !same_operation(*entry, operation);
    waits.push_back(describe_wait(*entry, rank) + (elsewhere ? " in " + describe(*entry) : ""));
  }
  if (waits.empty()) return text;
  return text + fmt::format("; waiting for up to {}: {}{}", age(longest), joined(waits, ", "),
                            more > 0 ? fmt::format(" and {} more", more) : "");
}

// The ranks of `circle` each wait for the next one, the last for the first.
Finding describe_circle(const WaitGraph& ranks, std::vector<int> circle) {
  std::rotate(circle.begin(), std::min_element(circle.begin(), circle.end()), circle.end());
  const FlightEntry& first = *ranks.running(circle[0]);
  const auto in_first = [&](int rank) { return same_operation(*ranks.running(rank), first); };
  if (is_collective(first) && std::all_of(circle.begin(), circle.end(), in_first)) {
    const auto least = std::min_element(circle.begin(), circle.end(), [&](int a, int b) {
      return ranks.running(a)->step < ranks.running(b)->step;
    });
    const int sender = ranks.waits_for(*least);
    return {
        {sender, fmt::format("rank {} has received no message from it in {}, where the ranks wait "
                             "for each other in a circle: is a link slow, or was a message lost?{}",
                             *least, describe_sized(first), describe_others(ranks, -1, first))}};
  }
  // Who is in a later operation has sent its part of the former: that is on its way.
  for (const int rank : circle) {
    const FlightEntry& operation = *ranks.running(rank);
    const int sender = ranks.waits_for(rank);
    if (!is_collective(operation) || same_operation(*ranks.running(sender), operation) ||
        !ranks.has_entered(sender, operation))
      continue;
    return {{sender,
             fmt::format("rank {} has received no message from it in {}, of which it has done its "
                         "part: is a link slow or cut, or was a message lost?{}",
                         rank, describe_sized(operation), describe_others(ranks, -1, operation))}};
  }
  std::vector<std::string> waits;
  for (const int rank : circle)
    waits.push_back(fmt::format("rank {} in {} waits for rank {}", rank,
                                describe(*ranks.running(rank)), ranks.waits_for(rank)));
  return {{circle[0], fmt::format("deadlock, the ranks wait for each other in a circle: {}",
                                  joined(waits, ", "))}};
}

// An explicit chain may close although a rank is missing, where a rank that waits for several has
// named but one.
std::optional<int> missing_from(const WaitGraph& ranks, std::span<const int> circle, int* waiting) {
  for (const int rank : circle) {
    for (const int absent : ranks.absent_from(*ranks.running(rank))) {
      if (ranks.running(absent) != nullptr) continue;
      *waiting = rank;
      return absent;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Finding> diagnose(std::span<const RankReport> reports, int asked_by) {
  const WaitGraph ranks(reports);
  if (auto mismatch = find_mismatch(ranks)) return mismatch;
  const int start = ranks.first_waiting(asked_by);
  if (start < 0) return std::nullopt;
  std::vector<int> chain = {start};
  for (;;) {
    const int next = ranks.waits_for(chain.back());
    if (next < 0) break;
    const auto seen = std::find(chain.begin(), chain.end(), next);
    if (seen != chain.end()) {
      chain.erase(chain.begin(), seen);
      int waiting = -1;
      const auto absent = missing_from(ranks, chain, &waiting);
      if (!absent) return describe_circle(ranks, chain);
      chain = {waiting, *absent};
      break;
    }
    chain.push_back(next);
  }
  const int culprit = chain.back();
  const int waiting = chain.size() > 1 ? chain[chain.size() - 2] : culprit;
  const FlightEntry& operation = *ranks.running(waiting);
  return Finding{{culprit, headline(ranks, culprit, operation, waiting) +
                               describe_others(ranks, culprit, operation)}};
}

void connect_diagnosis(Store& store, StoreServer* server, const FlightRecorder& recorder,
                       const std::string& directory) {
  store.on_inquiry([&recorder] { return recorder.image(); });
  if (server == nullptr) return;
  const auto read_answers = [](const std::vector<RankAnswer>& answers, int asked_by) {
    std::vector<RankReport> reports(answers.size());
    for (size_t rank = 0; rank < answers.size(); ++rank) {
      reports[rank].kind = answers[rank].kind;
      try {
        const std::string source = fmt::format("of rank {}", rank);
        if (!answers[rank].state.empty())
          reports[rank].record = parse_flight_record(answers[rank].state, source);
      } catch (const Error&) {
        // As if it had no recorder: the verdict says so.
      }
    }
    return diagnose(reports, asked_by);
  };
  const auto describe_lost = [directory](int rank) -> std::string {
    if (directory.empty()) return "";
    try {
      const FlightRecord record = read_flight_record(flight_record_path(directory, rank));
      return "Its last operation: " + describe_last(record);
    } catch (const Error&) {
      return "";  // it was on another host, or had no recorder
    }
  };
  server->set_diagnostics({read_answers, describe_lost});
}

}  // namespace gxp
