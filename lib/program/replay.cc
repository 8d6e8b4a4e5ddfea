#include "lib/program/replay.h"

#include <numeric>

namespace gxp {
namespace {

KindBytes persistent_bytes(const StepProgram& program, BufferId except) {
  KindBytes bytes{};
  for (size_t id = 0; id < program.buffers.size(); ++id) {
    const BufferSpec& buffer = program.buffers[id];
    const bool on_device = buffer.persistent && buffer.storage == Storage::kDevice;
    if (on_device && BufferId(id) != except) bytes[size_t(buffer.kind)] += buffer.bytes;
  }
  return bytes;
}

// What begins to live at each operation, and what has ceased to before it.
struct MemoryChange {
  KindBytes born{};
  KindBytes gone{};
};

std::vector<MemoryChange> changes(const StepProgram& program) {
  std::vector<MemoryChange> changes(program.ops.size() + 1);
  for (const BufferSpec& buffer : program.buffers) {
    if (buffer.persistent || buffer.first < 0) continue;
    changes[size_t(buffer.first)].born[size_t(buffer.kind)] += buffer.bytes;
    changes[size_t(buffer.last) + 1].gone[size_t(buffer.kind)] += buffer.bytes;
  }
  return changes;
}

}  // namespace

uint64_t total_of(const KindBytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
}

KindBytes sum_of(const KindBytes& a, const KindBytes& b) {
  KindBytes sum = a;
  for (size_t kind = 0; kind < kMemoryKindCount; ++kind) sum[kind] += b[kind];
  return sum;
}

MemoryReplay replay_memory(const StepProgram& program) {
  MemoryReplay replay;
  replay.persistent = persistent_bytes(program, kNoBuffer);
  replay.arena_bytes = program.arena_bytes;
  replay.allocated = sum_of(replay.persistent, program.arena_by_kind);
  KindBytes live = replay.persistent;
  const std::vector<MemoryChange> all = changes(program);
  for (size_t id = 0; id < program.ops.size(); ++id) {
    for (size_t kind = 0; kind < kMemoryKindCount; ++kind)
      live[kind] += all[id].born[kind] - all[id].gone[kind];
    replay.live.push_back(live);
    if (total_of(live) > total_of(replay.live[size_t(replay.peak)])) replay.peak = OpId(id);
  }
  return replay;
}

KindBytes allocated_beside(const StepProgram& program, const StepProgram& base) {
  const KindBytes persistent = persistent_bytes(program, program.parameters);
  if (program.arena_bytes <= base.arena_bytes) return persistent;
  return sum_of(persistent, program.arena_by_kind);
}

}  // namespace gxp
