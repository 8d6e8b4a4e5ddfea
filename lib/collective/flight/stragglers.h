// Which ranks the others wait for: how late each came to the operations that all of a group
// entered. Time spent in a collective hides this, as all ranks leave it together.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lib/collective/flight/flight_record.h"

namespace gxp {

struct Straggler {
  int rank = 0;
  size_t operations = 0;  // that were compared
  size_t last = 0;        // how often it came last of all
  double median_s = 0;    // lateness, relative to the first rank that entered
  double p99_s = 0;
};

struct StragglerRanking {
  std::vector<Straggler> ranks;  // the one that came last most often first, then by median
  bool by_duration = false;      // see rank_stragglers()
};

// Compares the collectives that every rank of their group still has in its record, with exact times
// (flight_recorder.h). On one host it compares entry times. Clocks of several hosts differ, so
// there the rank that stayed in an operation for the shortest time is taken to have come last, by
// as much as it stayed shorter than the longest. That is right where all ranks leave at the same
// time, as from all-reduce, all-gather and barrier; only these count then. Pure.
StragglerRanking rank_stragglers(std::span<const FlightRecord> records);

// One line a rank, the worst first: "rank 2: last in 31 of 40, late by 1.2 ms (median), 7.8 ms
// (p99)".
std::string to_text(const StragglerRanking& ranking);

}  // namespace gxp
