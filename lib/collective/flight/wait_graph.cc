#include "lib/collective/flight/wait_graph.h"

#include <algorithm>

namespace gxp {
namespace {

uint32_t sequence_of(const FlightEntry& entry) { return std::get<Call>(entry.call).sequence; }

}  // namespace

bool is_collective(const FlightEntry& entry) { return std::holds_alternative<Call>(entry.call); }

bool same_operation(const FlightEntry& a, const FlightEntry& b) {
  if (!is_collective(a) || !is_collective(b)) return &a == &b;
  return a.group == b.group && a.leader == b.leader && sequence_of(a) == sequence_of(b);
}

const FlightRecord* WaitGraph::record(int rank) const {
  const auto& record = reports_[size_t(rank)].record;
  return record ? &*record : nullptr;
}

const FlightEntry* WaitGraph::running(int rank) const {
  const FlightRecord* own = record(rank);
  if (own == nullptr || own->entries.empty()) return nullptr;
  const FlightEntry& last = own->entries.back();
  return last.state == FlightEntry::State::kRunning ? &last : nullptr;
}

double WaitGraph::running_s(int rank) const {
  return double(record(rank)->taken_ns - running(rank)->entered_ns) / 1e9;
}

const FlightEntry* WaitGraph::entry_in(int rank, const FlightEntry& operation) const {
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

bool WaitGraph::is_member(int rank, const FlightEntry& operation) const {
  if (operation.group == 0) return true;
  if (record(rank) == nullptr) return false;
  const auto group = record(rank)->groups.find(operation.group);
  return group != record(rank)->groups.end() && group->second.leader == operation.leader;
}

bool WaitGraph::has_entered(int rank, const FlightEntry& operation) const {
  if (entry_in(rank, operation) != nullptr) return true;
  if (record(rank) == nullptr || !is_member(rank, operation)) return false;
  const auto group = record(rank)->groups.find(operation.group);
  return group != record(rank)->groups.end() && group->second.entered > sequence_of(operation);
}

std::vector<int> WaitGraph::absent_from(const FlightEntry& operation) const {
  std::vector<int> ranks;
  for (int rank = 0; is_collective(operation) && rank < size(); ++rank) {
    if (is_member(rank, operation) && !has_entered(rank, operation)) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<int> WaitGraph::of_kind(RankAnswer::Kind wanted, std::vector<int> ranks) const {
  std::erase_if(ranks, [&](int rank) { return kind(rank) != wanted; });
  return ranks;
}

int WaitGraph::waits_for(int rank) const {
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

int WaitGraph::first_waiting(int wanted) const {
  if (0 <= wanted && wanted < size() && running(wanted) != nullptr) return wanted;
  int longest = -1;
  for (int rank = 0; rank < size(); ++rank) {
    if (running(rank) == nullptr) continue;
    if (longest < 0 || running_s(rank) > running_s(longest)) longest = rank;
  }
  return longest;
}

}  // namespace gxp
