#include "lib/forecast/memory.h"

#include <algorithm>

namespace gxp {
namespace {

KindBytes bytes_of(MemoryKind kind, uint64_t bytes) {
  KindBytes all{};
  all[size_t(kind)] = bytes;
  return all;
}

// The calls outside the program, of all ranks: when groups are made, once for shards and once for
// replicas, every rank tells the others three i64; a validation ends with a sum of two f64.
std::vector<OpTraffic> splits(const RankGroups& groups, const Network& network) {
  if (groups.replicas() == 1) return {};
  const Call wishes{.collective = Collective::kAllGather,
                    .dtype = DType::kU8,
                    .count = size_t(network.world_size) * 3 * sizeof(int64_t)};
  return {traffic_of(wishes, network)};
}
OpTraffic validation_sums(const Network& network) {
  return traffic_of({.collective = Collective::kAllReduce, .dtype = DType::kF64, .count = 2},
                    network);
}

void append(std::vector<OpTraffic>& all, const std::vector<OpTraffic>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

RunMemory memory_of_run(const RunPlan& plan, const Network& network, int rank,
                        uint64_t start_bytes) {
  const StepProgram& program = plan.step.program;
  RunMemory memory;
  memory.step = replay_memory(program);
  const KindBytes& allocated = memory.step.allocated;
  const auto add = [&](std::string name, const KindBytes& more) {
    memory.phases.push_back({std::move(name), sum_of(allocated, more)});
  };
  // Scratch is kept, so that each phase has that of those before it.
  std::vector<OpTraffic> traffic = splits(program.groups, network);
  add("start", sum_of(bytes_of(MemoryKind::kWorkspace, start_bytes),
                      bytes_of(MemoryKind::kCommunication, scratch_of(traffic, rank))));
  append(traffic, traffic_of(program, network));
  add("step", bytes_of(MemoryKind::kCommunication, scratch_of(traffic, rank)));
  if (plan.validation) {
    append(traffic, traffic_of(*plan.validation, network));
    traffic.push_back(validation_sums(network));
    add("validation", sum_of(allocated_beside(*plan.validation, program),
                             bytes_of(MemoryKind::kCommunication, scratch_of(traffic, rank))));
  }
  const Phase* most = &memory.phases[1];  // of equals, the step
  for (const Phase& phase : memory.phases) {
    if (total_of(phase.bytes) > total_of(most->bytes)) most = &phase;
  }
  memory.peak = most->bytes;
  memory.peak_phase = most->name;
  memory.peak_at = describe(program.ops[size_t(memory.step.peak)]);
  return memory;
}

}  // namespace gxp
