#include "cmd/shard_plan/report.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace gxp {
namespace {

// `sent` is sent_by, or what of it.
template <class Sent>
std::vector<int64_t> of_each_rank(const PlannedStep& step, const Sent& sent) {
  std::vector<int64_t> bytes;
  for (int rank = 0; rank < step.plan.shape.world_size; ++rank)
    bytes.push_back(int64_t(sent(step.traffic, rank)));
  return bytes;
}

// By RankGroup.
constexpr std::array<std::string_view, 3> kGroupNames = {"all ranks", "shard group", "replicas"};

struct WireRow {
  int64_t calls = 0;
  uint64_t bytes = 0;
  uint64_t between_hosts = 0;
  double seconds = 0;
  double exposed = 0;
};

}  // namespace

std::map<OpId, double> waited_for(const PlannedStep& step) {
  std::map<OpId, double> waited;
  for (size_t id = 0; id < step.time.ops.size(); ++id) {
    const OpTime& time = step.time.ops[id];
    if (step.plan.step.program.ops[id].lane == Lane::kCompute && time.waited_for >= 0)
      waited[time.waited_for] += time.waited;
  }
  return waited;
}

void add_step_facts(Report& report, const PlannedStep& step) {
  const Architecture& architecture = step.plan.architecture;
  const auto parameters = architecture.parameter_count();
  report.facts = {
      {{"strategy"}, std::string(step.plan.strategy.name)},
      {{"world_size", "ranks"}, int64_t{step.plan.shape.world_size}},
      {{"parameters"}, int64_t(parameters)},
      {{"padding"}, int64_t(step.plan.layout.count - parameters)},
      {{"wire_bytes_per_rank_per_step", fmt::format("sent by rank {} in a step", step.rank),
        Style::kBytes},
       int64_t(sent_by(step.traffic, step.rank))},
      {{"wire_bytes_of_ranks", "bytes sent by each rank"}, of_each_rank(step, sent_by)},
      {{"wire_bytes_between_hosts_of_ranks", "bytes sent to other hosts by each rank"},
       of_each_rank(step, sent_between_hosts_by)},
      {{"step_seconds", "seconds of a step"}, step.time.seconds},
      {{"compute_seconds", "seconds of arithmetic"}, step.time.compute_seconds},
      {{"comm_seconds", "seconds of communication"}, step.time.comm_seconds},
      {{"exposed_comm_seconds", "seconds of exposed communication"}, step.time.exposed_seconds},
      {{"peak_bytes", fmt::format("peak memory of rank {}", step.rank), Style::kBytes},
       int64_t(total_of(step.memory.peak))},
      {{"peak_phase", "phase of the peak"}, step.memory.peak_phase},
      {{"peak_at", "operation of the peak"}, step.memory.peak_at}};
}

void add_wire(Report& report, const PlannedStep& step) {
  const std::map<OpId, double> waited = waited_for(step);
  std::map<std::array<std::string, 4>, WireRow> rows;
  for (const OpTraffic& traffic : step.traffic) {
    const Op& op = step.plan.step.program.ops[size_t(traffic.op)];
    WireRow& row =
        rows[{std::string(to_string(op.kind)), std::string(kGroupNames[size_t(traffic.group)]),
              std::string(to_string(traffic.call.collective)),
              std::string(traffic.plan.algorithm->name)}];
    ++row.calls;
    row.bytes += traffic.sent[size_t(step.rank)];
    row.between_hosts += traffic.between_hosts[size_t(step.rank)];
    row.seconds += traffic.plan.predicted_seconds;
    const auto found = waited.find(traffic.op);
    if (found != waited.end()) row.exposed += found->second;
  }
  Table& table = report.add_table("wire", {{"operation"},
                                           {"among"},
                                           {"collective"},
                                           {"algorithm"},
                                           {"calls"},
                                           {"bytes", "bytes", Style::kBytes},
                                           {"between_hosts_bytes", "to other hosts", Style::kBytes},
                                           {"seconds"},
                                           {"exposed_seconds", "exposed"}});
  for (const auto& [names, row] : rows)
    table.add_row(names[0], names[1], names[2], names[3], row.calls, row.bytes, row.between_hosts,
                  row.seconds, row.exposed);
}

void add_strategies(Report& report, const std::vector<PlannedStep>& steps) {
  std::vector<Column> columns = {{"strategy"}};
  for (const std::string_view kind : kMemoryKindNames)
    columns.push_back({fmt::format("{}_bytes", kind), std::string(kind), Style::kBytes});
  columns.insert(columns.end(), {{"peak_bytes", "peak", Style::kBytes},
                                 {"wire_bytes_per_rank_per_step", "sent", Style::kBytes},
                                 {"step_seconds", "step s"},
                                 {"exposed_comm_seconds", "exposed s"}});
  Table& table = report.add_table("strategies", std::move(columns));
  for (const PlannedStep& step : steps) {
    std::vector<Cell> row = make_row(step.plan.strategy.name);
    for (const uint64_t bytes : step.memory.peak) row.emplace_back(int64_t(bytes));
    row.insert(row.end(),
               {int64_t(total_of(step.memory.peak)), int64_t(sent_by(step.traffic, step.rank)),
                step.time.seconds, step.time.exposed_seconds});
    table.add_row(std::move(row));
  }
}

namespace {

// What a setting's codecs would gain; a user's decision, since they lose precision.
void add_codecs(Report& report, const std::string& name, std::string StepShape::*setting,
                const std::vector<PlannedStep>& steps, double seconds_without) {
  if (steps.empty()) return;
  Table& table = report.add_table(
      name, {{"codec", "fastest plan with comm." + name.substr(0, name.size() - 1)},
             {"step_seconds", "step s"},
             {"speedup"},
             {"peak_bytes", "peak", Style::kBytes},
             {"between_hosts_bytes", "between hosts", Style::kBytes}});
  for (const PlannedStep& step : steps)
    table.add_row(step.plan.shape.*setting, step.time.seconds, seconds_without / step.time.seconds,
                  total_of(step.memory.peak), sent_between_hosts_by(step.traffic, step.rank));
}

}  // namespace

void add_choices(Report& report, const RunChoices& choices) {
  report.facts.push_back({{"tried", "plans"}, int64_t(choices.tried)});
  Table& table = report.add_table("plans", {{"peak_bytes", "peak", Style::kBytes},
                                            {"host_bytes", "host", Style::kBytes},
                                            {"file_bytes", "file", Style::kBytes},
                                            {"step_seconds", "step s"},
                                            {"exposed_seconds", "exposed s"},
                                            {"strategy"},
                                            {"shard_size", "shard"},
                                            {"micro_batch", "micro-batch"},
                                            {"grad_accum", "accumulation"},
                                            {"recompute"},
                                            {"offload"},
                                            {"wire_bytes", "sent", Style::kBytes}});
  for (size_t i = 0; i < choices.best.size(); ++i) {
    const PlannedStep& step = choices.best[i];
    const RunConfig& run = choices.settings[i];
    const auto& beside = step.plan.step.program.offloaded_bytes;
    const bool both = run.offload.parameters != OffloadTo::kNone;
    table.add_row(total_of(step.memory.peak), beside[size_t(Storage::kHost)],
                  beside[size_t(Storage::kFile)], step.time.seconds, step.time.exposed_seconds,
                  run.parallel.strategy, step.plan.step.program.groups.shard_size,
                  run.train.micro_batch, run.train.grad_accum, std::string(run.train.recompute),
                  both                                        ? "all"
                  : run.offload.optimizer == OffloadTo::kNone ? "none"
                                                              : "optimizer",
                  sent_by(step.traffic, step.rank));
  }
  if (choices.best.empty()) return;
  const double seconds = choices.best.back().time.seconds;
  add_codecs(report, "codecs", &StepShape::codec, choices.with_codec, seconds);
  add_codecs(report, "gather_codecs", &StepShape::gather_codec, choices.with_gather_codec, seconds);
}

}  // namespace gxp
