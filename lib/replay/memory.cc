#include "lib/replay/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/collective/compress/host_parts.h"

namespace gxp {
namespace {

KindBytes bytes_of(MemoryKind kind, uint64_t bytes) {
  KindBytes all{};
  all[size_t(kind)] = bytes;
  return all;
}

bool is_in_codec(const Op& op) { return !op.collective.codec.empty(); }

// The calls outside the program, of all ranks: when groups are made, once for shards and once for
// replicas, and for the hosts of a codec, every rank tells the others three i64; a validation ends with a sum of two f64.
std::vector<OpTraffic> splits(const StepProgram& program, const Network& network) {
  if (program.groups.replicas() == 1 && std::ranges::none_of(program.ops, is_in_codec)) return {};
  const Call requests{.collective = Collective::kAllGather,
                      .dtype = DType::kU8,
                      .count = size_t(network.world_size) * 3 * sizeof(int64_t)};
  return {traffic_of(requests, network)};
}

// Slots for the encoded parts of the largest collective that is compressed between hosts.
uint64_t slots_of(const StepProgram& program, int rank) {
  size_t most = 0;
  for (const Op& op : program.ops) {
    if (!is_in_codec(op)) continue;
    const HostPlace place = place_of(program.groups, op.collective.group, rank);
    most = std::max(
        most, slots_bytes(*find_codec(op.collective.codec), compressed_shape(*call_of(op)), place));
  }
  return most;
}

OpTraffic validation_sums(const Network& network) {
  return traffic_of({.collective = Collective::kAllReduce, .dtype = DType::kF64, .count = 2},
                    network);
}

void append(std::vector<OpTraffic>& all, const std::vector<OpTraffic>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

constexpr size_t kMostBuffers = 12;  // of the arena, told one by one

// What the buffer holds of the optimizer's state; nullptr: none.
const KeptState* state_of(const RunPlan& plan, BufferId id) {
  const auto& states = plan.step.program.optimizer_states;
  const auto found = std::ranges::find(states, id);
  return found == states.end() ? nullptr
                               : &plan.shape.optimizer.kept[size_t(found - states.begin())];
}

// How many ranks share what the buffer holds a shard of; 0: it has nothing per parameter.
int shards_of(const RunPlan& plan, BufferId id) {
  const StepProgram& program = plan.step.program;
  if (program.buffers[size_t(id)].rest != kNoBuffer) return 0;  // the other part is offloaded
  if (id == program.parameters) return program.parameter_shards;
  if (id == program.gradients) return program.gradient_shards;
  const KeptState* const state = state_of(plan, id);
  return state != nullptr && state->of_all ? program.optimizer_shards : 0;
}

Term explain_persistent(const RunPlan& plan, BufferId id) {
  const StepProgram& program = plan.step.program;
  const BufferSpec& buffer = program.buffers[size_t(id)];
  Term term{.component = buffer.name,
            .formula = "",
            .numbers = "",
            .bytes = buffer.bytes,
            .source = "step program"};
  const int shards = shards_of(plan, id);
  if (shards == 0) return term;
  const size_t count = id == program.parameters ? plan.layout.count : plan.layout.trained_count;
  const KeptState* const state = state_of(plan, id);
  const size_t block = state == nullptr ? 1 : state->block;
  const uint64_t each = buffer.bytes * uint64_t(shards) * block / count;
  const std::string of_block = block == 1 ? "" : fmt::format(" / {}", block);
  term.formula = fmt::format("{} P{}{}", each, of_block, shards > 1 ? " / S" : "");
  term.numbers = fmt::format("{} x {}{}", each, count, of_block);
  if (shards > 1) term.numbers += fmt::format(" / {}", shards);
  term.source = "ZeRO, arXiv:1910.02054, section 5";
  return term;
}

bool lives_at(const BufferSpec& buffer, OpId op) { return buffer.first <= op && op <= buffer.last; }

// The buffers that `wanted` takes, the largest first.
template <class Wanted>
std::vector<const BufferSpec*> buffers_by_size(const StepProgram& program, const Wanted& wanted) {
  std::vector<const BufferSpec*> found;
  for (const BufferSpec& buffer : program.buffers) {
    if (wanted(buffer)) found.push_back(&buffer);
  }
  std::ranges::stable_sort(found, std::greater<>(), &BufferSpec::bytes);
  return found;
}

// Whether ranks may reach the memory of each other's devices (Communicator::join_device()).
bool reach_devices(const Network& network) {
  const std::vector<int>& hosts = network.hosts;
  const auto has_neighbours = [&](int host) { return std::ranges::count(hosts, host) > 1; };
  return network.shared_arena && network.world_size > 1 &&
         (hosts.empty() || std::ranges::all_of(hosts, has_neighbours));
}

}  // namespace

RunMemory memory_of_run(const RunPlan& plan, const Network& network, int rank,
                        const DeviceTerms& terms) {
  const StepProgram& program = plan.step.program;
  RunMemory memory;
  memory.step = replay_memory(program);
  const KindBytes allocated =
      sum_of(memory.step.allocated,
             sum_of(bytes_of(MemoryKind::kWorkspace, terms.workspace_bytes),
                    bytes_of(MemoryKind::kCommunication,
                             (terms.holds_collectives ? slots_of(program, rank) : 0) +
                                 (reach_devices(network) ? terms.reached_bytes : 0))));
  const auto collectives = [&](const std::vector<OpTraffic>& traffic) {
    return bytes_of(MemoryKind::kCommunication,
                    terms.holds_collectives ? scratch_of(traffic, rank) : 0);
  };
  const auto add = [&](std::string name, const KindBytes& more) {
    memory.phases.push_back({std::move(name), sum_of(allocated, more)});
  };
  // Scratch is kept, so that each phase has that of those before it.
  std::vector<OpTraffic> traffic = splits(program, network);
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

SavedBytes saved_bytes(const RunPlan& plan) {
  SavedBytes saved;
  const bool has_residuals = plan.step.program.residuals != kNoBuffer;
  for (const UnitSpec& unit : plan.architecture.units) {
    for (const TensorSpec& tensor : unit.tensors) {
      const uint64_t weights = tensor.count() * sizeof(float);
      (tensor.frozen ? saved.frozen : saved.trained) += weights;
      if (tensor.frozen) continue;
      if (has_residuals) saved.trained += uint64_t(plan.step.program.groups.hosts) * weights;
      for (const KeptState& state : plan.shape.optimizer.kept) {
        const std::vector<size_t> shape = state.shape(unit, tensor);
        if (!shape.empty())
          saved.trained +=
              std::accumulate(shape.begin(), shape.end(), size_of(state.dtype), std::multiplies());
      }
    }
  }
  return saved;
}

std::string largest_at_peak(const RunPlan& plan, const RunMemory& memory, size_t count) {
  const StepProgram& program = plan.step.program;
  auto live = buffers_by_size(program, [&](const BufferSpec& buffer) {
    return buffer.persistent ? buffer.storage == Storage::kDevice
                             : lives_at(buffer, memory.step.peak);
  });
  live.resize(std::min(live.size(), count));
  std::string text;
  for (const BufferSpec* buffer : live)
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", buffer->name, format_bytes(buffer->bytes));
  return text;
}

std::vector<Term> explain_run(const RunPlan& plan, const RunMemory& memory) {
  const StepProgram& program = plan.step.program;
  const std::string source = "arena, " + describe(program.ops[size_t(memory.step.peak)]);
  std::vector<Term> terms;
  for (size_t id = 0; id < program.buffers.size(); ++id) {
    const BufferSpec& buffer = program.buffers[id];
    const bool on_device = buffer.persistent && buffer.storage == Storage::kDevice;
    if (on_device && buffer.bytes > 0) terms.push_back(explain_persistent(plan, BufferId(id)));
  }
  const auto add = [&](std::string name, uint64_t bytes, const std::string& from) {
    if (bytes > 0) terms.push_back({std::move(name), "", "", bytes, from});
  };
  const auto live = buffers_by_size(program, [&](const BufferSpec& buffer) {
    return !buffer.persistent && buffer.first >= 0 && lives_at(buffer, memory.step.peak);
  });
  uint64_t rest = 0;
  uint64_t filled = 0;
  for (size_t i = 0; i < live.size(); ++i) {
    filled += live[i]->bytes;
    if (i < kMostBuffers)
      add(live[i]->name, live[i]->bytes, source);
    else
      rest += live[i]->bytes;
  }
  if (live.size() > kMostBuffers)
    add(fmt::format("{} smaller buffers", live.size() - kMostBuffers), rest, source);
  add("gaps between them", memory.step.arena_bytes - filled, "interval colouring");
  const uint64_t step = total_of(memory.phases[1].bytes);
  add("scratch", step - total_of(memory.step.allocated), "collectives, by message");
  return terms;
}

}  // namespace gxp
