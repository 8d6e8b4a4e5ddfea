#include "lib/replay/memory.h"

#include <algorithm>
#include <functional>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

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
                        const DeviceTerms& terms) {
  const StepProgram& program = plan.step.program;
  RunMemory memory;
  memory.step = replay_memory(program);
  const KindBytes allocated =
      sum_of(memory.step.allocated, bytes_of(MemoryKind::kWorkspace, terms.workspace_bytes));
  const auto collectives = [&](const std::vector<OpTraffic>& traffic) {
    return bytes_of(MemoryKind::kCommunication,
                    terms.holds_collectives ? scratch_of(traffic, rank) : 0);
  };
  const auto add = [&](std::string name, const KindBytes& more) {
    memory.phases.push_back({std::move(name), sum_of(allocated, more)});
  };
  // Scratch is kept, so that each phase has that of those before it.
  std::vector<OpTraffic> traffic = splits(program.groups, network);
  add("start", sum_of(bytes_of(MemoryKind::kWorkspace, terms.start_bytes), collectives(traffic)));
  append(traffic, traffic_of(program, network));
  add("step", collectives(traffic));
  if (plan.validation) {
    append(traffic, traffic_of(*plan.validation, network));
    traffic.push_back(validation_sums(network));
    add("validation", sum_of(allocated_beside(*plan.validation, program), collectives(traffic)));
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

std::string largest_at_peak(const RunPlan& plan, const RunMemory& memory, size_t count) {
  std::vector<const BufferSpec*> live;
  for (const BufferSpec& buffer : plan.step.program.buffers) {
    const bool lives = buffer.persistent
                           ? buffer.storage == Storage::kDevice
                           : buffer.first <= memory.step.peak && memory.step.peak <= buffer.last;
    if (lives) live.push_back(&buffer);
  }
  std::ranges::stable_sort(live, std::greater(), &BufferSpec::bytes);
  live.resize(std::min(live.size(), count));
  std::string text;
  for (const BufferSpec* buffer : live)
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", buffer->name, format_bytes(buffer->bytes));
  return text;
}

}  // namespace gxp
