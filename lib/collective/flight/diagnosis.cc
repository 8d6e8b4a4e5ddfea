#include "lib/collective/flight/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/text/joined.h"
#include "lib/net/store/rank_list.h"

namespace gxp {
namespace {

constexpr size_t kShownWaits = 16;

uint32_t sequence_of(const FlightEntry& entry) { return std::get<Call>(entry.call).sequence; }

bool is_collective(const FlightEntry& entry) { return std::holds_alternative<Call>(entry.call); }

// Whether both entries are the same call of the same group. A message is the same only as itself.
bool same_operation(const FlightEntry& a, const FlightEntry& b) {
  if (!is_collective(a) || !is_collective(b)) return &a == &b;
  return a.group == b.group && a.leader == b.leader && sequence_of(a) == sequence_of(b);
}

// All ranks' flight records together: which operation each rank is in, and which rank it waits for.
// Ranks are the world's. Pure; borrows the reports.
class WaitGraph {
 public:
  explicit WaitGraph(std::span<const RankReport> reports) : reports_(reports) {}

  [[nodiscard]] int size() const { return int(reports_.size()); }
  [[nodiscard]] RankAnswer::Kind kind(int rank) const { return reports_[size_t(rank)].kind; }
  [[nodiscard]] const FlightRecord* record(int rank) const {
    const auto& record = reports_[size_t(rank)].record;
    return record ? &*record : nullptr;
  }
  // The operation that the rank is in, and for how long.
  [[nodiscard]] const FlightEntry* running(int rank) const {
    return running_entry(reports_[size_t(rank)]);
  }
  [[nodiscard]] double running_s(int rank) const {
    return double(record(rank)->taken_ns - running(rank)->entered_ns) / 1e9;
  }
  // The rank's own entry for the collective `operation`, current or past; null if it has none, or
  // its record does not reach that far back.
  [[nodiscard]] const FlightEntry* entry_in(int rank, const FlightEntry& operation) const {
    if (!is_collective(operation) || record(rank) == nullptr) return nullptr;
    const auto group = record(rank)->groups.find(operation.group);
    if (group == record(rank)->groups.end()) return nullptr;
    const auto& entries = record(rank)->entries;
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      if (entry->number < group->second.since) return nullptr;
      if (same_operation(*entry, operation)) return &*entry;
    }
    return nullptr;
  }
  [[nodiscard]] bool has_entered(int rank, const FlightEntry& operation) const {
    if (entry_in(rank, operation) != nullptr) return true;
    if (record(rank) == nullptr || !is_member(rank, operation)) return false;
    const auto group = record(rank)->groups.find(operation.group);
    return group != record(rank)->groups.end() && group->second.entered > sequence_of(operation);
  }
  // Members of the operation's group that have not entered it, as far as they are known: all ranks
  // for the world's group, else those that answer.
  [[nodiscard]] std::vector<int> absent_from(const FlightEntry& operation) const {
    std::vector<int> ranks;
    for (int rank = 0; is_collective(operation) && rank < size(); ++rank) {
      if (is_member(rank, operation) && !has_entered(rank, operation)) ranks.push_back(rank);
    }
    return ranks;
  }
  // The ranks among `ranks` that gave this kind of answer.
  [[nodiscard]] std::vector<int> of_kind(RankAnswer::Kind wanted, std::vector<int> ranks) const {
    std::erase_if(ranks, [&](int rank) { return kind(rank) != wanted; });
    return ranks;
  }
  // The rank that it waits for: the recorded one; else the message's peer; else the first absent
  // member, idle ones first. -1: none, or the rank is in no operation.
  [[nodiscard]] int waits_for(int rank) const {
    const FlightEntry* entry = running(rank);
    if (entry == nullptr) return -1;
    if (0 <= entry->waits_for && entry->waits_for < size()) return entry->waits_for;
    if (const PeerCall* message = std::get_if<PeerCall>(&entry->call)) {
      const int peer = message->from >= 0 ? message->from : message->to;
      return peer < size() ? peer : -1;
    }
    const std::vector<int> absent = absent_from(*entry);
    const auto idle = std::find_if(absent.begin(), absent.end(),
                                   [&](int other) { return running(other) == nullptr; });
    if (idle != absent.end()) return *idle;
    return absent.empty() ? -1 : absent.front();
  }
  // `wanted` if it is in an operation, else the rank that has been in one longest; -1: none.
  [[nodiscard]] int first_waiting(int wanted) const {
    if (0 <= wanted && wanted < size() && running(wanted) != nullptr) return wanted;
    int longest = -1;
    for (int rank = 0; rank < size(); ++rank) {
      if (running(rank) == nullptr) continue;
      if (longest < 0 || running_s(rank) > running_s(longest)) longest = rank;
    }
    return longest;
  }

 private:
  [[nodiscard]] bool is_member(int rank, const FlightEntry& operation) const {
    if (operation.group == 0) return true;
    if (record(rank) == nullptr) return false;
    const auto group = record(rank)->groups.find(operation.group);
    return group != record(rank)->groups.end() && group->second.leader == operation.leader;
  }
  std::span<const RankReport> reports_;
};

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

// In a circle within one collective, the message that the rank of the least step has not received.
std::optional<Finding> find_lost_in_step(const WaitGraph& ranks, std::span<const int> circle) {
  const FlightEntry& first = *ranks.running(circle[0]);
  const auto in_first = [&](int rank) { return same_operation(*ranks.running(rank), first); };
  if (!is_collective(first) || !std::ranges::all_of(circle, in_first)) return std::nullopt;
  const int least =
      *std::ranges::min_element(circle, {}, [&](int rank) { return ranks.running(rank)->step; });
  const int sender = ranks.waits_for(least);
  return {
      {{sender, fmt::format("rank {} has received no message from it in {}, where the ranks wait "
                            "for each other in a circle: is a link slow, or was a message lost?{}",
                            least, describe_sized(first), describe_others(ranks, -1, first))}}};
}

// In a circle over several operations, a message of an operation that its sender has left behind.
std::optional<Finding> find_lost_before(const WaitGraph& ranks, std::span<const int> circle) {
  for (const int rank : circle) {
    const FlightEntry& operation = *ranks.running(rank);
    const int sender = ranks.waits_for(rank);
    if (!is_collective(operation) || same_operation(*ranks.running(sender), operation) ||
        !ranks.has_entered(sender, operation))
      continue;
    return {
        {{sender,
          fmt::format("rank {} has received no message from it in {}, of which it has done "
                      "its part: is a link slow or cut, or was a message lost?{}",
                      rank, describe_sized(operation), describe_others(ranks, -1, operation))}}};
  }
  return std::nullopt;
}

// The ranks of `circle` each wait for the next one, the last for the first.
Finding describe_circle(const WaitGraph& ranks, std::vector<int> circle) {
  std::rotate(circle.begin(), std::ranges::min_element(circle), circle.end());
  if (auto lost = find_lost_in_step(ranks, circle)) return *std::move(lost);
  if (auto lost = find_lost_before(ranks, circle)) return *std::move(lost);
  std::vector<std::string> waits;
  for (const int rank : circle)
    waits.push_back(fmt::format("rank {} in {} waits for rank {}", rank,
                                describe(*ranks.running(rank)), ranks.waits_for(rank)));
  return {{circle[0], fmt::format("deadlock, the ranks wait for each other in a circle: {}",
                                  joined(waits, ", "))}};
}

// From `start`, each rank that the one before waits for.
struct WaitChain {
  std::vector<int> ranks;
  bool is_circle = false;  // the last one waits for the first
};

WaitChain follow_waits(const WaitGraph& ranks, int start) {
  std::vector<int> chain = {start};
  for (int next = ranks.waits_for(start); next >= 0; next = ranks.waits_for(next)) {
    const auto seen = std::ranges::find(chain, next);
    if (seen != chain.end()) return {{seen, chain.end()}, true};
    chain.push_back(next);
  }
  return {chain};
}

// A rank that waits for several has named one of them, so a chain may close into a circle although
// another rank is missing: the waiting rank and the missing one.
std::optional<std::pair<int, int>> find_missing(const WaitGraph& ranks,
                                                std::span<const int> circle) {
  for (const int rank : circle) {
    for (const int absent : ranks.absent_from(*ranks.running(rank)))
      if (ranks.running(absent) == nullptr) return std::pair(rank, absent);
  }
  return std::nullopt;
}

}  // namespace

const FlightEntry* running_entry(const RankReport& rank) {
  if (!rank.record || rank.record->entries.empty()) return nullptr;
  const FlightEntry& last = rank.record->entries.back();
  return last.state == FlightEntry::State::kRunning ? &last : nullptr;
}

std::vector<RankReport> read_answers(const std::vector<RankAnswer>& answers) {
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
  return reports;
}

std::optional<Finding> diagnose(std::span<const RankReport> reports, int asked_by) {
  const WaitGraph ranks(reports);
  if (auto mismatch = find_mismatch(ranks)) return mismatch;
  const int start = ranks.first_waiting(asked_by);
  if (start < 0) return std::nullopt;
  WaitChain chain = follow_waits(ranks, start);
  if (chain.is_circle) {
    const auto missing = find_missing(ranks, chain.ranks);
    if (!missing) return describe_circle(ranks, chain.ranks);
    chain.ranks = {missing->first, missing->second};
  }
  const int culprit = chain.ranks.back();
  const int waiting = chain.ranks.size() > 1 ? chain.ranks.end()[-2] : culprit;
  const FlightEntry& operation = *ranks.running(waiting);
  return Finding{{culprit, headline(ranks, culprit, operation, waiting) +
                               describe_others(ranks, culprit, operation)}};
}

void connect_diagnosis(Store& store, StoreServer* server, const FlightRecorder& recorder,
                       const std::string& directory) {
  store.on_inquiry([&recorder] { return recorder.image(); });
  if (server == nullptr) return;
  const auto explain = [](const std::vector<RankAnswer>& answers, int asked_by) {
    return diagnose(read_answers(answers), asked_by);
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
  server->set_diagnostics({explain, describe_lost});
}

}  // namespace gxp
