#include "lib/collective/flight/stragglers.h"

#include "tests/catch.h"

using namespace gxp;

namespace {

// Enters operation i at i seconds and `late_ms[i]`; all leave at i seconds and 500 ms.
FlightRecord rank_with(int rank, const std::vector<double>& late_ms, const std::string& host,
                       double clock_s = 0) {
  FlightRecord record{.rank = rank, .host = host, .groups = {{0, {.leader = 0, .size = 3}}}};
  for (size_t i = 0; i < late_ms.size(); ++i) {
    FlightEntry entry;
    entry.number = i;
    entry.call = Call{.collective = Collective::kAllReduce, .sequence = uint32_t(i)};
    entry.state = FlightEntry::State::kDone;
    entry.entered_ns = int64_t(1e9 * (double(i) + clock_s) + 1e6 * late_ms[i]);
    entry.left_ns = int64_t(1e9 * (double(i) + clock_s + 0.5));
    entry.entered_exactly = entry.left_exactly = true;
    record.entries.push_back(entry);
  }
  return record;
}

}  // namespace

TEST_CASE("the rank that comes last most often is ranked first", "[collective]") {
  const bool several_hosts = GENERATE(false, true);
  const std::string other = several_hosts ? "b" : "a";
  const double offset_s = several_hosts ? 77 : 0;  // clocks of hosts have nothing in common
  const std::vector<FlightRecord> records = {rank_with(0, {0, 0, 5, 0}, "a"),
                                             rank_with(1, {8, 2, 0, 30}, other, offset_s),
                                             rank_with(2, {1, 1, 1, 1}, "a")};
  const StragglerRanking ranking = rank_stragglers(records);
  CHECK(ranking.by_duration == several_hosts);
  CHECK(
      to_text(ranking).starts_with("rank 1: last in 3 of 4, late by 8 ms (median), 30 ms (p99)\n"
                                   "rank 0: last in 1 of 4, late by 0 ms (median), 5 ms (p99)\n"
                                   "rank 2: last in 0 of 4, late by 1 ms (median), 1 ms (p99)\n"));
}

TEST_CASE("operations that a rank lacks, or whose time is not exact, are left out",
          "[collective]") {
  std::vector<FlightRecord> records = {rank_with(0, {0, 0, 0}, "a"), rank_with(1, {9, 9, 1}, "a"),
                                       rank_with(2, {0, 0, 0}, "a")};
  records[2].entries.erase(records[2].entries.begin());
  records[0].entries[1].entered_exactly = false;
  const StragglerRanking ranking = rank_stragglers(records);
  CHECK((ranking.ranks[0].operations == 1 && ranking.ranks[0].rank == 1));
  CHECK(ranking.ranks[0].p99_s == Approx(1e-3));
}

TEST_CASE("without records there is nobody to rank", "[collective]") {
  CHECK(rank_stragglers({}).ranks.empty());
}
