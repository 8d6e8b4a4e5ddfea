#include "lib/forecast/memory.h"

#include <algorithm>

namespace gxp {
namespace {

KindBytes bytes_of(MemoryKind kind, uint64_t bytes) {
  KindBytes all{};
  all[size_t(kind)] = bytes;
  return all;
}

// The sums of losses and tokens over the ranks, at the end of a validation.
Call validation_sums() {
  return {.collective = Collective::kAllReduce, .dtype = DType::kF64, .count = 2};
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
  add("start", bytes_of(MemoryKind::kWorkspace, start_bytes));
  uint64_t scratch = scratch_of(traffic_of(program, network), rank);
  add("step", bytes_of(MemoryKind::kCommunication, scratch));
  if (plan.validation) {
    // Scratch is kept, so that of the steps is there still.
    scratch = std::max(scratch, scratch_of(traffic_of(*plan.validation, network), rank));
    if (network.world_size > 1)
      scratch = std::max(scratch, traffic_of(validation_sums(), network).scratch[size_t(rank)]);
    add("validation", sum_of(allocated_beside(*plan.validation, program),
                             bytes_of(MemoryKind::kCommunication, scratch)));
  }
  const Phase* most = &memory.phases[1];  // of equals, the step
  for (const Phase& phase : memory.phases) {
    if (total_of(phase.bytes) > total_of(most->bytes)) most = &phase;
  }
  memory.peak = most->bytes;
  memory.peak_at =
      most->name == "step" ? describe(program.ops[size_t(memory.step.peak)]) : most->name;
  return memory;
}

}  // namespace gxp
