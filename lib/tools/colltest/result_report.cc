#include "lib/tools/colltest/result_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "lib/tools/colltest/totals.h"

namespace gxp {
namespace {

using Cells = std::vector<Cell>;

Cell microseconds(double seconds) { return seconds * 1e6; }

template <class T>
Cell optional_microseconds(const std::optional<T>& seconds) {
  return seconds ? microseconds(*seconds) : Cell();
}

struct HalfColumn {
  const char* key;
  std::function<Cell(const CaseResult&, const PlacementResult&, int world_size)> cell;
};

Bandwidth rate(const CaseResult& result, const PlacementResult& half, int world_size) {
  return bandwidth(*result.bench.operation, result.bench.size_bytes(), half.slowest.median,
                   world_size);
}

using Result = const CaseResult&;
using Half = const PlacementResult&;
Cell median_us(Result, Half half, int) { return microseconds(half.slowest.median); }

const HalfColumn kHalfColumns[] = {
    {"time_us", median_us},
    {"algbw", [](Result result, Half half, int n) { return Cell(rate(result, half, n).algbw); }},
    {"busbw", [](Result result, Half half, int n) { return Cell(rate(result, half, n).busbw); }},
    {"wrong",
     [](Result, Half half, int) { return half.wrong ? Cell(int64_t(*half.wrong)) : Cell(); }},
    {"out_of_bounds", [](Result, Half half, int) { return Cell(int64_t(half.out_of_bounds)); }},
    {"iterations", [](Result, Half half, int) { return Cell(int64_t(half.iterations)); }},
    {"p50_us", median_us},  // time_us again, next to the other percentiles
    {"p99_us", [](Result, Half half, int) { return microseconds(half.slowest.p99); }},
    {"min_us", [](Result, Half half, int) { return microseconds(half.slowest.min); }},
    {"max_us", [](Result, Half half, int) { return microseconds(half.slowest.max); }},
    {"mean_us", [](Result, Half half, int) { return microseconds(half.slowest.mean); }},
    {"median_95_low_us",
     [](Result, Half half, int) {
       return half.slowest.median_95 ? microseconds(half.slowest.median_95->low) : Cell();
     }},
    {"median_95_high_us",
     [](Result, Half half, int) {
       return half.slowest.median_95 ? microseconds(half.slowest.median_95->high) : Cell();
     }},
};
const HalfColumn kTimes = {"times_ns", [](Result, Half half, int) {
                             std::vector<int64_t> times(half.times_s.size());
                             std::ranges::transform(half.times_s, times.begin(), [](double s) {
                               return int64_t(std::llround(s * 1e9));
                             });
                             return Cell(times);
                           }};

std::vector<HalfColumn> half_columns(const RunFacts& facts) {
  std::vector<HalfColumn> columns(std::begin(kHalfColumns), std::end(kHalfColumns));
  if (facts.keep_times) columns.push_back(kTimes);
  if (facts.copy_bytes_per_s <= 0) return columns;
  const auto share = [rate = facts.copy_bytes_per_s](Result result, Half half, int n) {
    if (!has_copy_share(result)) return Cell();
    return Cell(copy_share(n, result.bench.size_bytes(), half.slowest.median, rate));
  };
  columns.push_back({"copy_share", share});
  return columns;
}

// The columns that tell a case from the others, for both tables.
std::vector<Column> case_columns() {
  return {{"size"}, {"count"}, {"type"}, {"op"}, {"redop"}, {"root"}};
}

Cells case_cells(const BenchCase& bench, int world_size) {
  const bool has_redop = reduces(*bench.operation);
  return {int64_t(bench.size_bytes()),
          int64_t(nccl_count(bench, world_size)),
          moves_data(*bench.operation) ? Cell(std::string(to_string(bench.dtype))) : Cell(),
          std::string(bench.operation->name),
          has_redop ? Cell(std::string(to_string(bench.redop))) : Cell(),
          has_root(*bench.operation) ? Cell(int64_t{bench.root}) : Cell()};
}

Cells choice_cells(const RunFacts& facts, const CaseResult& result) {
  Cells cells = {result.algorithm, facts.transport, int64_t{result.channels},
                 int64_t(result.segment_bytes), optional_microseconds(result.predicted_s)};
  if (result.predicted_s) {
    const BenchCase& bench = result.bench;
    const Bandwidth expected =
        bandwidth(*bench.operation, bench.size_bytes(), *result.predicted_s, facts.world_size);
    cells.insert(cells.end(), {expected.busbw, result.reason});
  } else {
    cells.insert(cells.end(), {Cell(), Cell()});
  }
  return cells;
}

void add_results(Report& report, const RunFacts& facts, std::span<const CaseResult> results) {
  std::vector<Column> columns = case_columns();
  for (const char* key : {"algorithm", "transport", "channels", "segment_bytes", "predicted_us",
                          "expected_busbw", "reason"})
    columns.push_back({key});
  const std::vector<HalfColumn> halves = half_columns(facts);
  for (const std::string half : {"out_of_place.", "in_place."}) {
    for (const HalfColumn& column : halves) columns.push_back({half + column.key});
  }
  Table& table = report.add_table("results", std::move(columns));
  for (const CaseResult& result : results) {
    Cells cells = case_cells(result.bench, facts.world_size);
    std::ranges::move(choice_cells(facts, result), std::back_inserter(cells));
    for (const HalfColumn& column : halves)
      cells.push_back(column.cell(result, result.out_of_place, facts.world_size));
    for (const HalfColumn& column : halves)
      cells.push_back(result.in_place ? column.cell(result, *result.in_place, facts.world_size)
                                      : Cell());
    table.add_row(std::move(cells));
  }
}

void add_ranks(Report& report, const RunFacts& facts, std::span<const CaseResult> results) {
  std::vector<Column> columns = case_columns();
  for (const char* key : {"rank", "out_of_place.median_us", "out_of_place.late_us",
                          "in_place.median_us", "in_place.late_us"})
    columns.push_back({key});
  Table& table = report.add_table("ranks", std::move(columns));
  for (const CaseResult& result : results) {
    for (size_t rank = 0; rank < result.out_of_place.ranks.size(); ++rank) {
      Cells cells = case_cells(result.bench, facts.world_size);
      cells.emplace_back(int64_t(rank));
      const auto add = [&](const RankTiming* timing) {
        cells.push_back(timing != nullptr ? microseconds(timing->median_s) : Cell());
        cells.push_back(timing != nullptr ? optional_microseconds(timing->late_s) : Cell());
      };
      add(&result.out_of_place.ranks[rank]);
      add(result.in_place ? &result.in_place->ranks[rank] : nullptr);
      table.add_row(std::move(cells));
    }
  }
}

void add_devices(Report& report, std::span<const RankInfo> ranks) {
  Table& table = report.add_table(
      "devices", {{"rank"}, {"pid"}, {"hostname"}, {"device_info"}, {"gpu"}, {"bus_id"}});
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankInfo& info = ranks[rank];
    const bool on_gpu = info.gpu >= 0;
    table.add_row(rank, info.pid, info.host.data(), info.processor.data(),
                  on_gpu ? Cell(int64_t{info.gpu}) : Cell(),
                  on_gpu ? Cell(std::string(info.bus_id.data())) : Cell());
  }
}

void add_copies(Report& report, std::span<const CopyRate> copies) {
  Table& table = report.add_table("copies", {{"rank"}, {"from_rank"}, {"gb_per_s"}});
  for (const CopyRate& copy : copies) table.add_row(copy.rank, copy.from, copy.bytes_per_s / 1e9);
}

}  // namespace

Report to_report(const RunFacts& facts, std::span<const RankInfo> ranks,
                 std::span<const CaseResult> results) {
  const Totals totals = totals_of(results, facts.world_size);
  const bool on_gpus = facts.copy_bytes_per_s > 0;
  Report report{.schema = "gxp.allreduce-test/1"};
  report.facts = {{{"world_size"}, int64_t{facts.world_size}},
                  {{"transport"}, facts.transport},
                  {{"engine"}, facts.engine},
                  {{"memory"}, facts.memory},
                  {{"device"}, facts.device},
                  {{"collectives_on"}, facts.medium.of_collectives()},
                  {{"messages_on"}, facts.medium.of_messages()},
                  {{"copy_gb_per_s"}, on_gpus ? Cell(facts.copy_bytes_per_s / 1e9) : Cell()},
                  {{"wrong"}, int64_t(totals.wrong)},
                  {{"out_of_bounds"}, int64_t(totals.out_of_bounds)},
                  {{"average_bus_bandwidth"}, totals.busbw}};
  add_results(report, facts, results);
  add_ranks(report, facts, results);
  add_devices(report, ranks);
  if (on_gpus) add_copies(report, facts.copies);
  return report;
}

}  // namespace gxp
