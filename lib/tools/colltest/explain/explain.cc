#include "lib/tools/colltest/explain/explain.h"

#include <fmt/format.h>

#include "lib/base/bytes.h"
#include "lib/collective/algorithm/schedule.h"
#include "lib/collective/tune/shared_selection.h"
#include "lib/tools/colltest/explain/drawing.h"

namespace gxp {
namespace {

std::vector<Cell> plan_row(const BenchCase& bench, const AlgorithmPlan& plan, int world_size) {
  const Bandwidth expected =
      bandwidth(*bench.operation, bench.size_bytes(), plan.predicted_seconds, world_size);
  return {std::string(bench.operation->name),
          int64_t(bench.size_bytes()),
          std::string(to_string(bench.dtype)),
          std::string(plan.algorithm->name),
          int64_t{plan.channels},
          int64_t(plan.segment_bytes),
          plan.predicted_seconds * 1e6,
          expected.busbw,
          plan.reason};
}

}  // namespace

Explanation explain(std::span<const BenchCase> cases, const GroupTopology& topology,
                    const SelectionSettings& settings, const Profile& profile,
                    MemoryOrigin memory) {
  const CostModel model(topology, profile);
  // Whether CMA works is known from the profile, if at all.
  const MethodLimits limits{
      .ranks = topology.world_size, .cma = true, .wanted = wanted_method(settings)};
  Explanation result;
  result.plans.schema = "gxp.allreduce-test.plan/1";
  result.plans.facts = {{{"world_size", "ranks"}, int64_t{topology.world_size}},
                        {{"transport"}, std::string(topology.transport)},
                        {{"memory"}, std::string(kMemoryOriginNames[size_t(memory)])}};
  Table& table = result.plans.add_table("plans", {{"op"},
                                                  {"size", "size", Style::kBytes},
                                                  {"type"},
                                                  {"algorithm"},
                                                  {"channels"},
                                                  {"segment_bytes", "segment", Style::kBytes},
                                                  {"predicted_us"},
                                                  {"expected_busbw", "expected busbw GB/s"},
                                                  {"reason"}});
  for (const BenchCase& bench : cases) {
    if (!bench.operation->collective) continue;  // one message each; nothing to choose
    const Call call = call_of(bench, 0);
    const AlgorithmPlan plan = select_with_sharing(call, settings, model, limits, memory);
    table.add_row(plan_row(bench, plan, topology.world_size));
    if (&bench != &cases.back()) continue;
    const CallShape shape = shape_of(call, plan, topology);
    const Schedule schedule = record_schedule(*plan.algorithm, shape);
    result.title = fmt::format("{} of {} {} by {} on {} ranks; ranges are in elements",
                               bench.operation->name, format_bytes(bench.size_bytes()),
                               to_string(bench.dtype), plan.algorithm->name, topology.world_size);
    result.steps = schedule_table(schedule);
    result.svg = schedule_svg(*plan.algorithm, shape, schedule);
  }
  return result;
}

}  // namespace gxp
