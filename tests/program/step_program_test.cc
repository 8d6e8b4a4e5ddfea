#include "lib/program/step_program.h"

#include <numeric>
#include <set>

#include "tests/catch.h"
#include "tests/program/sample_programs.h"

namespace gxp {
namespace {

bool overlap(size_t a, size_t a_bytes, size_t b, size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

// All operations that are done before each one starts, from the lanes' order and `after` alone.
std::vector<std::set<OpId>> everything_before(const StepProgram& program) {
  std::vector<std::set<OpId>> before(program.ops.size());
  for (size_t id = 0; id < program.ops.size(); ++id) {
    const auto add = [&](OpId other) {
      before[id].insert(other);
      before[id].insert(before[size_t(other)].begin(), before[size_t(other)].end());
    };
    for (const OpId other : program.ops[id].after) add(other);
    for (OpId other = OpId(id) - 1; other >= 0; --other) {
      if (program.ops[size_t(other)].lane == program.ops[id].lane) add(other);
    }
  }
  return before;
}

bool conflict(const StepProgram& program, const Op& a, const Op& b) {
  for (const BufferUse& x : a.uses) {
    for (const BufferUse& y : b.uses) {
      const BufferSpec& p = program.buffers[size_t(x.buffer)];
      const BufferSpec& q = program.buffers[size_t(y.buffer)];
      const bool same_memory = p.persistent || q.persistent ? x.buffer == y.buffer : true;
      if (!same_memory || (!x.write && !y.write)) continue;
      if (overlap(p.offset + x.bytes.begin, x.bytes.count, q.offset + y.bytes.begin, y.bytes.count))
        return true;
    }
  }
  return false;
}

TEST_CASE("buffers that live together do not overlap in the arena", "[program]") {
  const StepProgram program = sample_step(GENERATE(1, 2), GENERATE(1, 3), 1 << 14).program;
  for (const BufferSpec& a : program.buffers) {
    if (a.persistent) continue;
    CHECK(a.offset + a.bytes <= program.arena_bytes);
    for (const BufferSpec& b : program.buffers) {
      const bool together = !b.persistent && &a != &b && a.first <= b.last && b.first <= a.last;
      if (together) CHECK_FALSE(overlap(a.offset, a.bytes, b.offset, b.bytes));
    }
  }
}

TEST_CASE("the arena is no larger than its fullest operation needs, plus a tenth", "[program]") {
  const StepProgram program = sample_step(2, 2, 1 << 14).program;
  uint64_t most = 0;
  for (OpId id = 0; id < OpId(program.ops.size()); ++id) {
    uint64_t live = 0;
    for (const BufferSpec& buffer : program.buffers) {
      if (!buffer.persistent && buffer.first <= id && id <= buffer.last) live += buffer.bytes;
    }
    most = std::max(most, live);
  }
  CHECK(program.arena_bytes >= most);
  CHECK(program.arena_bytes <= most + most / 10);
  const auto& kinds = program.arena_by_kind;
  CHECK(std::accumulate(kinds.begin(), kinds.end(), uint64_t{0}) == program.arena_bytes);
}

TEST_CASE("operations that touch the same bytes are ordered", "[program]") {
  const StepProgram program = sample_step(2, GENERATE(1, 2), GENERATE(1, 1 << 14, 1 << 30)).program;
  const auto before = everything_before(program);
  for (size_t id = 0; id < program.ops.size(); ++id) {
    for (size_t other = 0; other < id; ++other) {
      if (conflict(program, program.ops[other], program.ops[id]))
        CHECK(before[id].contains(OpId(other)));
    }
  }
}

TEST_CASE("no edge is implied by the others", "[program]") {
  const StepProgram program = sample_step(2, 2, 1).program;
  const auto before = everything_before(program);
  for (const Op& op : program.ops) {
    for (const OpId edge : op.after) {
      for (const OpId other : op.after) CHECK_FALSE(before[size_t(other)].contains(edge));
    }
  }
}

TEST_CASE("an operation describes itself in words", "[program]") {
  Op op;
  op.kind = OpKind::kBackward;
  op.unit = 3;
  op.micro = 1;
  CHECK(describe(op) == "backward unit 3 (micro-batch 1)");
}

}  // namespace
}  // namespace gxp
