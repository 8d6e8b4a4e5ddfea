#include "lib/program/step_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/program/placement.h"

namespace gxp {
namespace {

constexpr size_t kArenaAlignment = 64;  // of its size, in bytes

bool overlap(const Range& a, const Range& b) { return a.begin < b.end() && b.begin < a.end(); }

// The memory of a use: which allocation (the arena is -1), and which bytes of it.
struct MemoryRange {
  BufferId allocation;
  Range bytes;
};

MemoryRange place_of(const StepProgram& program, const BufferUse& use) {
  const BufferSpec& buffer = program.buffers[size_t(use.buffer)];
  if (buffer.persistent) return {use.buffer, use.bytes};
  return {-1, {buffer.offset + use.bytes.begin, use.bytes.count}};
}

bool conflict(const StepProgram& program, const Op& a, const Op& b) {
  for (const BufferUse& x : a.uses) {
    for (const BufferUse& y : b.uses) {
      if (!x.write && !y.write) continue;
      const MemoryRange p = place_of(program, x);
      const MemoryRange q = place_of(program, y);
      if (p.allocation == q.allocation && overlap(p.bytes, q.bytes)) return true;
    }
  }
  return false;
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

uint64_t total(const std::array<uint64_t, kMemoryKindCount>& use) {
  return std::accumulate(use.begin(), use.end(), uint64_t{0});
}

// By the operation at which the most lives.
void attribute_arena(StepProgram& program) {
  using Bytes = std::array<uint64_t, kMemoryKindCount>;
  std::vector<Bytes> born(program.ops.size() + 1), gone(program.ops.size() + 1);
  for (const BufferSpec& buffer : program.buffers) {
    if (buffer.persistent || buffer.first < 0) continue;
    born[size_t(buffer.first)][size_t(buffer.kind)] += buffer.bytes;
    gone[size_t(buffer.last) + 1][size_t(buffer.kind)] += buffer.bytes;
  }
  Bytes live{};
  for (size_t id = 0; id < program.ops.size(); ++id) {
    for (size_t kind = 0; kind < kMemoryKindCount; ++kind)
      live[kind] += born[id][kind] - gone[id][kind];
    if (total(live) > total(program.arena_by_kind)) program.arena_by_kind = live;
  }
  const uint64_t gaps = program.arena_bytes - total(program.arena_by_kind);
  program.arena_by_kind[size_t(MemoryKind::kWorkspace)] += gaps;
}

// The operations of the other lanes, the newest first, down to those that are known to be done.
class Candidates {
 public:
  Candidates(const std::array<std::vector<OpId>, kLaneCount>& earlier, size_t own_lane)
      : earlier_(earlier) {
    for (size_t lane = 0; lane < kLaneCount; ++lane)
      left_[lane] = lane == own_lane ? 0 : earlier[lane].size();
  }

  // -1: there is none.
  OpId next(const std::array<OpId, kLaneCount>& reached) {
    size_t from = kLaneCount;
    OpId newest = -1;
    for (size_t lane = 0; lane < kLaneCount; ++lane) {
      const OpId last = left_[lane] == 0 ? -1 : earlier_[lane][left_[lane] - 1];
      if (last <= reached[lane] || last <= newest) continue;
      newest = last;
      from = lane;
    }
    if (from < kLaneCount) --left_[from];
    return newest;
  }

 private:
  const std::array<std::vector<OpId>, kLaneCount>& earlier_;
  std::array<size_t, kLaneCount> left_{};
};

}  // namespace

std::string_view to_string(Lane lane) {
  constexpr std::array<std::string_view, kLaneCount> kNames = {"compute", "comm", "offload"};
  return kNames[size_t(lane)];
}

const OpRow& row_of(OpKind kind) {
  static constexpr std::array kRows = {
#define GXP_OP(kind, name, part, ranks, steps) \
  OpRow{name, OpPart::part, OpRanks::ranks, OpSteps::steps},
#include "lib/program/op_kinds.inc"
#undef GXP_OP
  };
  return kRows[size_t(kind)];
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

std::vector<RankGroup> StepProgram::publishing_groups() const {
  std::vector<RankGroup> found;
  if (parameter_shards == optimizer_shards) return found;
  if (optimizer_shards > groups.shard_size) found.push_back(RankGroup::kReplicas);
  if (parameter_shards < groups.shard_size) found.push_back(RankGroup::kShards);
  return found;
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
  place_in_arena(program.buffers, by_size, program.ops.size());
  for (const BufferId id : by_size) {
    const BufferSpec& buffer = program.buffers[size_t(id)];
    program.arena_bytes =
        std::max(program.arena_bytes, round_up(buffer.offset + buffer.bytes, kArenaAlignment));
  }
  attribute_arena(program);
}

void derive_order(StepProgram& program) {
  // reached[id][lane]: the last operation of that lane that is known to be done when `id` starts.
  std::vector<std::array<OpId, kLaneCount>> reached(program.ops.size());
  std::array<std::vector<OpId>, kLaneCount> earlier;  // by lane
  for (size_t id = 0; id < program.ops.size(); ++id) {
    Op& op = program.ops[id];
    std::vector<OpId>& own = earlier[size_t(op.lane)];
    const OpId before = own.empty() ? -1 : own.back();
    if (before >= 0) {
      reached[id] = reached[size_t(before)];
    } else {
      reached[id].fill(-1);
    }
    reached[id][size_t(op.lane)] = before;
    Candidates candidates(earlier, size_t(op.lane));
    for (OpId other = candidates.next(reached[id]); other >= 0;
         other = candidates.next(reached[id])) {
      const Op& candidate = program.ops[size_t(other)];
      if (!conflict(program, candidate, op)) continue;
      op.after.push_back(other);
      for (size_t lane = 0; lane < kLaneCount; ++lane) {
        reached[id][lane] = std::max(reached[id][lane], reached[size_t(other)][lane]);
      }
      reached[id][size_t(candidate.lane)] = std::max(reached[id][size_t(candidate.lane)], other);
    }
    own.push_back(OpId(id));
  }
}

}  // namespace gxp
