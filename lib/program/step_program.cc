#include "lib/program/step_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr size_t kArenaAlignment = 64;  // of its size, in bytes

bool overlap(const Range& a, const Range& b) { return a.begin < b.end() && b.begin < a.end(); }

bool live_together(const BufferSpec& a, const BufferSpec& b) {
  return a.first <= b.last && b.first <= a.last;
}

// The memory of a use: which allocation (the arena is -1), and which bytes of it.
struct Place {
  BufferId allocation;
  Range bytes;
};

Place place_of(const StepProgram& program, const BufferUse& use) {
  const BufferSpec& buffer = program.buffers[size_t(use.buffer)];
  if (buffer.persistent) return {use.buffer, use.bytes};
  return {-1, {buffer.offset + use.bytes.begin, use.bytes.count}};
}

bool conflict(const StepProgram& program, const Op& a, const Op& b) {
  for (const BufferUse& x : a.uses) {
    for (const BufferUse& y : b.uses) {
      if (!x.write && !y.write) continue;
      const Place p = place_of(program, x);
      const Place q = place_of(program, y);
      if (p.allocation == q.allocation && overlap(p.bytes, q.bytes)) return true;
    }
  }
  return false;
}

// The lowest offset at which `bytes` bytes are free of all `taken` ranges.
size_t lowest_gap(std::vector<Range> taken, size_t bytes, size_t alignment) {
  std::sort(taken.begin(), taken.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  size_t offset = 0;
  for (const Range& range : taken) {
    if (offset + bytes <= range.begin) break;
    offset = std::max(offset, round_up(range.end(), alignment));
  }
  return offset;
}

void find_lives(StepProgram& program) {
  for (size_t id = 0; id < program.ops.size(); ++id) {
    for (const BufferUse& use : program.ops[id].uses) {
      BufferSpec& buffer = program.buffers[size_t(use.buffer)];
      if (buffer.first < 0) buffer.first = OpId(id);
      buffer.last = OpId(id);
    }
  }
}

std::array<uint64_t, kMemoryKindCount> live_bytes(const StepProgram& program, OpId id) {
  std::array<uint64_t, kMemoryKindCount> live{};
  for (const BufferSpec& buffer : program.buffers) {
    const bool lives = !buffer.persistent && buffer.first <= id && id <= buffer.last;
    if (lives) live[size_t(buffer.kind)] += buffer.bytes;
  }
  return live;
}

uint64_t total(const std::array<uint64_t, kMemoryKindCount>& use) {
  return std::accumulate(use.begin(), use.end(), uint64_t{0});
}

void attribute_arena(StepProgram& program) {
  for (size_t id = 0; id < program.ops.size(); ++id) {
    const auto live = live_bytes(program, OpId(id));
    if (total(live) > total(program.arena_by_kind)) program.arena_by_kind = live;
  }
  const uint64_t gaps = program.arena_bytes - total(program.arena_by_kind);
  program.arena_by_kind[size_t(MemoryKind::kWorkspace)] += gaps;
}

}  // namespace

std::string_view to_string(Lane lane) {
  constexpr std::array<std::string_view, kLaneCount> kNames = {"compute", "comm", "offload"};
  return kNames[size_t(lane)];
}

std::string_view to_string(OpKind kind) {
  constexpr std::array<std::string_view, 21> kNames = {"next-batch",
                                                       "forward",
                                                       "loss",
                                                       "evaluate-loss",
                                                       "logits",
                                                       "recompute",
                                                       "backward",
                                                       "round-parameters",
                                                       "gather-parameters",
                                                       "reduce-gradients",
                                                       "add-gradients",
                                                       "reduce-loss",
                                                       "measure-gradients",
                                                       "gather-norm",
                                                       "clip-gradients",
                                                       "update",
                                                       "prepare-update",
                                                       "gather-directions",
                                                       "update-whole",
                                                       "fetch",
                                                       "store"};
  return kNames[size_t(kind)];
}

std::string describe(const Op& op) {
  std::string text(to_string(op.kind));
  if (op.unit >= 0) text += fmt::format(" unit {}", op.unit);
  if (op.wrap >= 0) text += fmt::format(" wrap {}", op.wrap);
  if (op.bucket >= 0) text += fmt::format(" bucket {}", op.bucket);
  if (op.update.tile.number >= 0) text += fmt::format(" tile {}", op.update.tile.number);
  if (op.micro >= 0) text += fmt::format(" (micro-batch {})", op.micro);
  return text;
}

void place_buffers(StepProgram& program) {
  find_lives(program);
  std::vector<BufferId> by_size;
  for (size_t id = 0; id < program.buffers.size(); ++id) {
    if (!program.buffers[id].persistent && program.buffers[id].first >= 0)
      by_size.push_back(BufferId(id));
  }
  std::stable_sort(by_size.begin(), by_size.end(), [&](BufferId a, BufferId b) {
    return program.buffers[size_t(a)].bytes > program.buffers[size_t(b)].bytes;
  });
  std::vector<BufferId> placed;
  for (const BufferId id : by_size) {
    BufferSpec& buffer = program.buffers[size_t(id)];
    std::vector<Range> taken;
    for (const BufferId other : placed) {
      const BufferSpec& neighbour = program.buffers[size_t(other)];
      if (live_together(buffer, neighbour)) taken.push_back({neighbour.offset, neighbour.bytes});
    }
    buffer.offset = lowest_gap(std::move(taken), buffer.bytes, buffer.alignment);
    program.arena_bytes =
        std::max(program.arena_bytes, round_up(buffer.offset + buffer.bytes, kArenaAlignment));
    placed.push_back(id);
  }
  attribute_arena(program);
}

void derive_order(StepProgram& program) {
  // reached[id][lane]: the last operation of that lane that is known to be done when `id` starts.
  std::vector<std::array<OpId, kLaneCount>> reached(program.ops.size());
  std::array<OpId, kLaneCount> newest;
  newest.fill(-1);
  for (size_t id = 0; id < program.ops.size(); ++id) {
    Op& op = program.ops[id];
    const OpId before = newest[size_t(op.lane)];
    if (before >= 0) {
      reached[id] = reached[size_t(before)];
    } else {
      reached[id].fill(-1);
    }
    reached[id][size_t(op.lane)] = before;
    for (OpId other = OpId(id) - 1; other >= 0; --other) {
      const Op& earlier = program.ops[size_t(other)];
      if (earlier.lane == op.lane || reached[id][size_t(earlier.lane)] >= other) continue;
      if (!conflict(program, earlier, op)) continue;
      op.after.push_back(other);
      for (size_t lane = 0; lane < kLaneCount; ++lane) {
        reached[id][lane] = std::max(reached[id][lane], reached[size_t(other)][lane]);
      }
      reached[id][size_t(earlier.lane)] = std::max(reached[id][size_t(earlier.lane)], other);
    }
    newest[size_t(op.lane)] = OpId(id);
  }
}

}  // namespace gxp
