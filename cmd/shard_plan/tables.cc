// What gxp shard-plan tells of units, tensors and operations.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "cmd/shard_plan/report.h"
#include "lib/replay/gpu_time.h"

namespace gxp {
namespace {

// The unit whose parameters or gradients an operation moves; of a bucket or an FSDP unit the first
// to be needed.
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

}  // namespace

void add_units(Report& report, const PlannedStep& step) {
  std::map<int, double> exposed;
  for (const auto& [id, seconds] : waited_for(step))
    exposed[unit_of(step, step.plan.step.program.ops[size_t(id)])] += seconds;
  Table& table = report.add_table("units", {{"unit"},
                                            {"wrap"},
                                            {"name"},
                                            {"tensors"},
                                            {"parameters"},
                                            {"trained"},
                                            {"padding"},
                                            {"elements"},
                                            {"shard_elements", "shard"},
                                            {"parameters_bytes", "kept", Style::kBytes},
                                            {"exposed_seconds", "exposed"}});
  const StepProgram& program = step.plan.step.program;
  const BufferSpec& kept = program.buffers[size_t(program.parameters)];
  for (size_t unit = 0; unit < step.plan.layout.units.size(); ++unit) {
    const UnitSpec& spec = step.plan.architecture.units[unit];
    const UnitLayout& place = step.plan.layout.units[unit];
    const size_t elements = place.trained.flat.count + place.frozen.flat.count;
    const UnitPart& part = place.trained.wrap < 0 ? place.frozen : place.trained;
    table.add_row(unit, part.wrap, spec.name, spec.tensors.size(), spec.parameter_count(),
                  spec.trainable_count(), elements - spec.parameter_count(), elements,
                  elements / size_t(program.optimizer_shards),
                  kept.bytes * elements / step.plan.layout.count, exposed[int(unit)]);
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
  Table& table = report.add_table(
      "tensors", {{"unit"}, {"tensor"}, {"shape"}, {"elements"}, {"frozen"}, {"ranks"}});
  for (const auto& [place, ranks] : owners) {
    const UnitSpec& unit = step.plan.architecture.units[size_t(place.first)];
    const TensorSpec& tensor = unit.tensors[size_t(place.second)];
    const std::vector<int64_t> shape(tensor.shape.begin(), tensor.shape.end());
    table.add_row(unit.name, tensor.name, shape, tensor.count(), tensor.frozen, ranges_of(ranks));
  }
}

void add_classes(Report& report, const PlannedStep& step, const Gpu& gpu) {
  const StepClasses classes = time_by_class(step.plan, gpu);
  const StepShape& shape = step.plan.shape;
  const double tokens = double(shape.rows * shape.positions) * shape.grad_accum;  // of a rank
  const double flops = step.plan.architecture.train_flops_per_token(shape.positions) * tokens;
  report.facts.push_back(
      {{"predicted_on", "kernels predicted, not measured, on"}, std::string(gpu.name)});
  report.facts.push_back(
      {{"tokens_per_second", "tokens per second of a rank"}, tokens / step.time.seconds});
  report.facts.push_back({{"mfu"}, flops / step.time.seconds / gpu.flops_16});
  Table& table = report.add_table("classes", {{"class"},
                                              {"milliseconds", "ms"},
                                              {"share"},
                                              {"ideal_milliseconds", "ideal ms"},
                                              {"tflop"},
                                              {"gb"}});
  const auto add = [&](const std::string& name, double seconds, double ideal, Cell tflop, Cell gb) {
    table.add_row(name, 1e3 * seconds, seconds / step.time.seconds, 1e3 * ideal, std::move(tflop),
                  std::move(gb));
  };
  std::vector<ClassTime> rows = classes.classes;
  std::ranges::stable_sort(rows, std::greater<>(), &ClassTime::seconds);
  for (const ClassTime& row : rows)
    add(std::string(kKernelClassNames[size_t(row.of)]), row.seconds, row.ideal_seconds,
        row.flops / 1e12, row.bytes / 1e9);
  add(fmt::format("gaps between {:.0f} kernels", classes.kernels), classes.gap_seconds, 0, {}, {});
  if (shape.world_size > 1) add("waits for other lanes", step.time.exposed_seconds, 0, {}, {});
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
        id, to_string(op.lane), describe(op), used_bytes(op, false), used_bytes(op, true),
        sends == traffic.end() ? Cell() : Cell(int64_t(sends->second->sent[size_t(step.rank)])),
        step.time.ops[id].begin, step.time.ops[id].end,
        std::vector<int64_t>(op.after.begin(), op.after.end()));
  }
}

}  // namespace gxp
