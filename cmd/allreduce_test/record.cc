#include "cmd/allreduce_test/modes.h"

#include <algorithm>
#include <array>

#include "cmd/result_file.h"
#include "lib/collective/flight/flight_record.h"
#include "lib/collective/flight/stragglers.h"

namespace gxp {
namespace {

std::string_view name_of(FlightEntry::State state) {
  constexpr std::array<std::string_view, 3> kNames = {"running", "done", "failed"};
  return kNames[size_t(state)];
}

Cell known(int value) { return value < 0 ? Cell() : Cell(int64_t{value}); }

void add_operations(Report& report, const std::vector<FlightRecord>& records) {
  Table& table = report.add_table("operations", {{"rank"},
                                                 {"number"},
                                                 {"operation"},
                                                 {"algorithm"},
                                                 {"state"},
                                                 {"entered_unix_s"},
                                                 {"seconds"},
                                                 {"step"},
                                                 {"waits_for"}});
  for (const FlightRecord& record : records) {
    for (const FlightEntry& entry : record.entries) {
      const bool running = entry.state == FlightEntry::State::kRunning;
      const int64_t until = running ? record.taken_ns : entry.left_ns;
      table.add_row(record.rank, entry.number, describe(entry), entry.algorithm,
                    name_of(entry.state), double(entry.entered_ns + record.wall_offset_ns) / 1e9,
                    double(std::max<int64_t>(until - entry.entered_ns, 0)) / 1e9, known(entry.step),
                    known(entry.waits_for));
    }
  }
}

void add_stragglers(Report& report, const StragglerRanking& ranking) {
  Table& table = report.add_table(
      "stragglers", {{"rank"}, {"operations"}, {"came_last"}, {"late_median_s"}, {"late_p99_s"}});
  for (const Straggler& rank : ranking.ranks)
    table.add_row(rank.rank, rank.operations, rank.last, rank.median_s, rank.p99_s);
}

}  // namespace

void show_record(const AllreduceOptions& options) {
  const std::vector<FlightRecord> records = read_flight_records(options.show_record);
  const StragglerRanking ranking = rank_stragglers(records);
  if (options.format != Format::kText) {
    Report report{.schema = "gxp.flight-record/1"};
    add_operations(report, records);
    add_stragglers(report, ranking);
    return print(report, options.format);
  }
  std::string text;
  for (const FlightRecord& record : records) text += to_text(record) + "\n";
  write_stdout(text + "last ranks of calls, worst first:\n" + to_text(ranking));
}

}  // namespace gxp
