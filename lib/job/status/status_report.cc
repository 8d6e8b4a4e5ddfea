#include "lib/job/status/status_report.h"

#include <algorithm>
#include <cmath>

#include "lib/base/deadline.h"
#include "lib/base/median.h"
#include "lib/collective/flight/stragglers.h"

namespace gxp {
namespace {

constexpr double kLongWait = 1;     // seconds; a shorter one is no news
constexpr double kLate = 0.001;     // seconds; what tells a straggler from the others
constexpr double kMuchData = 0.01;  // share of the time that a rank waits for data
constexpr int64_t kNsPerS = 1'000'000'000;

double seconds(int64_t ns) { return double(std::max<int64_t>(ns, 0)) / double(kNsPerS); }

Cell bytes_or_none(int64_t bytes) { return bytes > 0 ? Cell(bytes) : Cell(); }

Cell host_peak(const RankReport& rank) {
  return rank.record ? bytes_or_none(rank.record->host_peak_bytes) : Cell();
}

Cell device_peak(const RankReport& rank) {
  return rank.record ? bytes_or_none(rank.record->device_peak_bytes) : Cell();
}

void add_progress(Report& report, const TrainingFacts& facts, const RankReport& rank_0) {
  const double per_step = facts.seconds_per_step;
  const int64_t done = facts.steps_done;
  const std::chrono::steady_clock::time_point ended{
      std::chrono::steady_clock::duration(facts.step_ended.load())};
  const auto add = [&](Column column, Cell value) {
    report.facts.push_back({std::move(column), std::move(value)});
  };
  add({"step"}, done);
  add({"steps"}, facts.total_steps);
  if (per_step > 0) {
    add({"steps_per_s", "steps/s"}, 1 / per_step);
    add({"tokens_per_s", "tokens/s"}, facts.tokens_per_step / per_step);
    add({"eta_s", "time left, s"}, double(facts.total_steps - done) * per_step);
    add({"loss"}, facts.loss.load());
    add({"since_step_s", "since last step, s"}, seconds_since(ended));
  }
  add({"host_peak_bytes", "host memory of rank 0, peak", Style::kBytes}, host_peak(rank_0));
  add({"device_peak_bytes", "device memory of rank 0, peak", Style::kBytes}, device_peak(rank_0));
}

void add_ranks(Report& report, const JobAnswers& answers) {
  Table& table = report.add_table("ranks", {{"rank"},
                                            {"host"},
                                            {"process"},
                                            {"activity"},
                                            {"step"},
                                            {"activity_s", "for s"},
                                            {"operation"},
                                            {"operation_s", "for s"},
                                            {"waits_for", "waits for rank"},
                                            {"host_peak_bytes", "host peak", Style::kBytes},
                                            {"device_peak_bytes", "device peak", Style::kBytes}});
  for (size_t i = 0; i < answers.ranks.size(); ++i) {
    const RankReport& rank = answers.ranks[i];
    const ProcessPlace process = answers.place_of(int(i));
    const FlightEntry* entry = running_entry(rank);
    const auto& record = rank.record;
    table.add_row(
        int64_t(i), process.host.empty() ? Cell() : Cell(process.host),
        process.process == 0 ? Cell() : Cell(process.process), describe_activity(rank),
        record && record->step > 0 ? Cell(record->step) : Cell(),
        record ? Cell(seconds(record->taken_ns - record->activity_since_ns)) : Cell(),
        entry != nullptr ? Cell(describe(*entry)) : Cell(),
        entry != nullptr ? Cell(seconds(record->taken_ns - entry->entered_ns)) : Cell(),
        entry != nullptr && entry->waits_for >= 0 ? Cell(int64_t{entry->waits_for}) : Cell(),
        host_peak(rank), device_peak(rank));
  }
}

// What the rank does while the others wait for it. All collectives are alike to all ranks, so what
// is not data is computation.
std::string_view phase_of(const FlightRecord& record, const std::vector<FlightRecord>& all) {
  std::vector<double> waits;
  for (const FlightRecord& other : all) waits.push_back(seconds(other.data_ns));
  const double own = seconds(record.data_ns);
  const double first = record.entries.empty() ? 0 : seconds(record.entries.front().entered_ns);
  const double span = seconds(record.taken_ns) - first;
  return own > 2 * median_of(waits) && own > kMuchData * span ? "data" : "compute";
}

void add_stragglers(Report& report, const std::vector<RankReport>& ranks) {
  std::vector<FlightRecord> records;
  for (const RankReport& rank : ranks)
    if (rank.record) records.push_back(*rank.record);
  if (records.size() < 2) return;
  Table& table = report.add_table("stragglers", {{"rank"},
                                                 {"host"},
                                                 {"phase"},
                                                 {"came_last", "came last"},
                                                 {"operations", "of"},
                                                 {"late_median_s", "late, median s"}});
  table.when_empty = "no stragglers\n";
  for (const Straggler& late : rank_stragglers(records).ranks) {
    if (late.median_s < kLate || 2 * late.last < late.operations) continue;
    const auto record = std::ranges::find(records, late.rank, &FlightRecord::rank);
    table.add_row(int64_t{late.rank}, record->host_name, std::string(phase_of(*record, records)),
                  int64_t(late.last), int64_t(late.operations), late.median_s);
  }
}

// The rank that the others wait for, and why. Nothing where no wait is long.
Cell describe_waits(const std::vector<RankReport>& ranks, double seconds_per_step) {
  const bool is_long = std::ranges::any_of(ranks, [&](const RankReport& rank) {
    const FlightEntry* entry = running_entry(rank);
    return entry != nullptr && seconds(rank.record->taken_ns - entry->entered_ns) >
                                   std::max(kLongWait, seconds_per_step);
  });
  const auto finding = is_long ? diagnose(ranks, -1) : std::nullopt;
  if (!finding) return {};
  return fmt::format("rank {}: {}", finding->verdict.rank, finding->verdict.reason);
}

}  // namespace

std::string describe_activity(const RankReport& rank) {
  if (rank.kind == RankAnswer::Kind::kSilent) return "not responding";
  if (rank.kind == RankAnswer::Kind::kLeft) return "ended";
  if (rank.kind == RankAnswer::Kind::kAbsent) return "not joined";
  if (!rank.record) return "unknown";
  const bool communicates =
      rank.record->activity == Activity::kCompute && running_entry(rank) != nullptr;
  return std::string(communicates ? "communication" : to_string(rank.record->activity));
}

ProcessPlace JobAnswers::place_of(int rank) const {
  const auto& record = ranks[size_t(rank)].record;
  if (record) return {record->host_name, record->process};
  const auto found = known.find(rank);
  return found == known.end() ? ProcessPlace{} : found->second;
}

Report describe_job(const TrainingFacts& facts, const JobAnswers& answers) {
  Report report{.schema = "gxp.train-status/1"};
  add_progress(report, facts, answers.ranks.front());
  report.facts.push_back(
      {{"waiting", "the ranks wait for"}, describe_waits(answers.ranks, facts.seconds_per_step)});
  add_ranks(report, answers);
  add_stragglers(report, answers.ranks);
  return report;
}

}  // namespace gxp
