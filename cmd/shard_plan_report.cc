#include "cmd/shard_plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

// Seconds that the compute lane waits for an operation, by OpId.
std::map<OpId, double> waited_for(const PlannedStep& step) {
  std::map<OpId, double> waited;
  for (size_t id = 0; id < step.time.ops.size(); ++id) {
    const OpTime& time = step.time.ops[id];
    if (step.plan.step.program.ops[id].lane == Lane::kCompute && time.waited_for >= 0)
      waited[time.waited_for] += time.waited;
  }
  return waited;
}

// The unit whose parameters or gradients an operation moves; of a bucket or a wrap the first to be
// needed.
int unit_of(const PlannedStep& step, const Op& op) {
  if (op.bucket >= 0) return step.plan.step.buckets[size_t(op.bucket)].first_unit;
  return op.wrap >= 0 ? step.plan.layout.wraps[size_t(op.wrap)].first_unit : op.unit;
}

uint64_t used_bytes(const Op& op, bool writes) {
  uint64_t bytes = 0;
  for (const BufferUse& use : op.uses) {
    if (use.write == writes) bytes += use.bytes.count;
  }
  return bytes;
}

// "0-3,8": ranks in ascending order.
std::string ranges_of(const std::vector<int>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i]);
    if (last > i) text += fmt::format("-{}", ranks[last]);
    i = last + 1;
  }
  return text;
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
      {{"wire_bytes_between_hosts_of_ranks", "of them to other hosts"},
       of_each_rank(step, sent_between_hosts_by)},
      {{"step_seconds", "seconds of a step"}, step.time.seconds},
      {{"compute_seconds", "of arithmetic"}, step.time.compute_seconds},
      {{"comm_seconds", "of communication"}, step.time.comm_seconds},
      {{"exposed_comm_seconds", "of communication, exposed"}, step.time.exposed_seconds},
      {{"peak_bytes", fmt::format("peak memory of rank {}", step.rank), Style::kBytes},
       int64_t(total_of(step.memory.peak))},
      {{"peak_phase", "in its phase"}, step.memory.peak_phase},
      {{"peak_at", "most lives in a step at"}, step.memory.peak_at}};
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
    table.add_row({names[0], names[1], names[2], names[3], row.calls, int64_t(row.bytes),
                   int64_t(row.between_hosts), row.seconds, row.exposed});
}

void add_units(Report& report, const PlannedStep& step) {
  std::map<int, double> exposed;
  for (const auto& [id, seconds] : waited_for(step))
    exposed[unit_of(step, step.plan.step.program.ops[size_t(id)])] += seconds;
  Table& table = report.add_table("units", {{"unit"},
                                            {"wrap"},
                                            {"name"},
                                            {"tensors"},
                                            {"parameters"},
                                            {"padding"},
                                            {"elements"},
                                            {"shard_elements", "shard"},
                                            {"parameters_bytes", "kept", Style::kBytes},
                                            {"exposed_seconds", "exposed"}});
  const StepProgram& program = step.plan.step.program;
  const BufferSpec& kept = program.buffers[size_t(program.parameters)];
  for (size_t unit = 0; unit < step.plan.layout.units.size(); ++unit) {
    const UnitSpec& spec = step.plan.architecture.units[unit];
    const size_t elements = step.plan.layout.units[unit].flat.count;
    table.add_row({int64_t(unit), int64_t{step.plan.layout.wrap_of[unit]}, spec.name,
                   int64_t(spec.tensors.size()), int64_t(spec.parameter_count()),
                   int64_t(elements - spec.parameter_count()), int64_t(elements),
                   int64_t(elements / size_t(program.optimizer_shards)),
                   int64_t(kept.bytes * elements / step.plan.layout.count), exposed[int(unit)]});
  }
}

void add_tensors(Report& report, const PlannedStep& step) {
  const int shards = step.plan.step.program.optimizer_shards;
  std::map<std::pair<int, int>, std::vector<int>> owners;  // by unit and tensor
  for (int rank = 0; rank < step.plan.shape.world_size; ++rank) {
    const int shard = step.plan.step.program.groups.shard_of(rank, shards);
    for (const TensorPart& part : make_parts(step.plan.layout, shards, shard))
      owners[{part.unit, part.tensor}].push_back(rank);
  }
  Table& table =
      report.add_table("tensors", {{"unit"}, {"tensor"}, {"shape"}, {"elements"}, {"ranks"}});
  for (const auto& [place, ranks] : owners) {
    const UnitSpec& unit = step.plan.architecture.units[size_t(place.first)];
    const TensorSpec& tensor = unit.tensors[size_t(place.second)];
    const std::vector<int64_t> shape(tensor.shape.begin(), tensor.shape.end());
    table.add_row({unit.name, tensor.name, shape, int64_t(tensor.count()), ranges_of(ranks)});
  }
}

void add_program(Report& report, const PlannedStep& step) {
  std::map<OpId, const OpTraffic*> traffic;
  for (const OpTraffic& op : step.traffic) traffic[op.op] = &op;
  Table& table = report.add_table("program", {{"op"},
                                              {"lane"},
                                              {"operation"},
                                              {"read_bytes", "reads", Style::kBytes},
                                              {"written_bytes", "writes", Style::kBytes},
                                              {"wire_bytes", "sends", Style::kBytes},
                                              {"begin_seconds", "begins"},
                                              {"end_seconds", "ends"},
                                              {"after", "waits for"}});
  for (size_t id = 0; id < step.plan.step.program.ops.size(); ++id) {
    const Op& op = step.plan.step.program.ops[id];
    const auto sends = traffic.find(OpId(id));
    table.add_row(
        {int64_t(id), std::string(to_string(op.lane)), describe(op), int64_t(used_bytes(op, false)),
         int64_t(used_bytes(op, true)),
         sends == traffic.end() ? Cell() : Cell(int64_t(sends->second->sent[size_t(step.rank)])),
         step.time.ops[id].begin, step.time.ops[id].end,
         std::vector<int64_t>(op.after.begin(), op.after.end())});
  }
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
    std::vector<Cell> row = {std::string(step.plan.strategy.name)};
    for (const uint64_t bytes : step.memory.peak) row.emplace_back(int64_t(bytes));
    row.insert(row.end(),
               {int64_t(total_of(step.memory.peak)), int64_t(sent_by(step.traffic, step.rank)),
                step.time.seconds, step.time.exposed_seconds});
    table.add_row(std::move(row));
  }
}

}  // namespace gxp
