// All ranks' flight records together: which operation each rank is in, and which rank it waits for.
// Ranks are the world's. Pure; borrows the reports.
#pragma once

#include <span>
#include <vector>

#include "lib/collective/flight/diagnosis.h"

namespace gxp {

bool is_collective(const FlightEntry& entry);
// Whether both entries are the same call of the same group. A message is the same only as itself.
bool same_operation(const FlightEntry& a, const FlightEntry& b);

class WaitGraph {
 public:
  explicit WaitGraph(std::span<const RankReport> reports) : reports_(reports) {}

  [[nodiscard]] int size() const { return int(reports_.size()); }
  [[nodiscard]] RankAnswer::Kind kind(int rank) const { return reports_[size_t(rank)].kind; }
  [[nodiscard]] const FlightRecord* record(int rank) const;
  // The operation that the rank is in, and for how long.
  [[nodiscard]] const FlightEntry* running(int rank) const;
  [[nodiscard]] double running_s(int rank) const;
  // The rank's own entry for the collective `operation`, current or past; null if it has none, or
  // its record does not reach that far back.
  [[nodiscard]] const FlightEntry* entry_in(int rank, const FlightEntry& operation) const;
  [[nodiscard]] bool has_entered(int rank, const FlightEntry& operation) const;
  // Members of the operation's group that have not entered it, as far as they are known: all ranks
  // for the world's group, else those that answer.
  [[nodiscard]] std::vector<int> absent_from(const FlightEntry& operation) const;
  // The ranks among `ranks` that gave this kind of answer.
  [[nodiscard]] std::vector<int> of_kind(RankAnswer::Kind wanted, std::vector<int> ranks) const;
  // The rank that it waits for: the recorded one; else the message's peer; else the first absent
  // member, idle ones first. -1: none, or the rank is in no operation.
  [[nodiscard]] int waits_for(int rank) const;
  // `wanted` if it is in an operation, else the rank that has been in one longest; -1: none.
  [[nodiscard]] int first_waiting(int wanted) const;

 private:
  [[nodiscard]] bool is_member(int rank, const FlightEntry& operation) const;
  std::span<const RankReport> reports_;
};

}  // namespace gxp
