#include "lib/program/build.h"

#include <algorithm>

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/program/sample_programs.h"

namespace gxp {
namespace {

int count_ops(const StepProgram& program, OpKind kind) {
  return int(std::count_if(program.ops.begin(), program.ops.end(),
                           [&](const Op& op) { return op.kind == kind; }));
}

TEST_CASE("a step runs every unit forward and backward once per micro-batch", "[program]") {
  const int grad_accum = GENERATE(1, 3);
  const StepProgram program = sample_step(2, grad_accum, 1).program;
  CHECK(count_ops(program, OpKind::kNextBatch) == grad_accum);
  CHECK(count_ops(program, OpKind::kForward) == 4 * grad_accum);
  CHECK(count_ops(program, OpKind::kLoss) == grad_accum);
  CHECK(count_ops(program, OpKind::kBackward) == 4 * grad_accum);
  CHECK(count_ops(program, OpKind::kUpdate) == 1);
}

TEST_CASE("every bucket is reduced once, after the last micro-batch has finished its units",
          "[program]") {
  const BuiltStep built = sample_step(2, 2, GENERATE(1, 30000, 1 << 30));
  CHECK(count_ops(built.program, OpKind::kReduceGradients) == int(built.buckets.size()));
  for (size_t id = 0; id < built.program.ops.size(); ++id) {
    const Op& op = built.program.ops[id];
    if (op.kind != OpKind::kReduceGradients) continue;
    for (size_t later = id + 1; later < built.program.ops.size(); ++later) {
      const Op& other = built.program.ops[later];
      const bool touches_gradients = other.kind == OpKind::kBackward || other.kind == OpKind::kLoss;
      if (touches_gradients) CHECK(other.unit < built.buckets[size_t(op.bucket)].first_unit);
    }
  }
}

TEST_CASE("one rank communicates nothing", "[program]") {
  const StepProgram program = sample_step(1, 2, 1).program;
  for (const Op& op : program.ops) CHECK(op.lane == Lane::kCompute);
}

TEST_CASE("reductions overlap the backward pass of the units below them", "[program]") {
  const StepProgram program = sample_step(2, 1, 1).program;
  const auto is_reduction = [](const Op& op) { return op.kind == OpKind::kReduceGradients; };
  const auto first = std::find_if(program.ops.begin(), program.ops.end(), is_reduction);
  REQUIRE(first != program.ops.end());
  for (auto op = first + 1; op != program.ops.end() && op->kind == OpKind::kBackward; ++op) {
    CHECK(op->after.empty());
  }
}

TEST_CASE("a forward pass keeps nothing for a backward pass", "[program]") {
  const Architecture architecture = sample_architecture();
  const StepShape shape{.rows = 2, .positions = 20};
  const ParameterLayout layout = make_layout(architecture, 1);
  const StepProgram pass =
      build_forward(architecture, layout, find_strategy("ddp"), shape, OpKind::kEvaluateLoss);
  const StepProgram step =
      build_train_step(architecture, layout, find_strategy("ddp"), shape).program;
  CHECK(pass.gradients == kNoBuffer);
  CHECK(pass.arena_bytes < step.arena_bytes / 2);
}

// The step of a model with three blocks, the units 1 to 3, that makes all activations again.
StepProgram full_recompute(int grad_accum, int vocab_size = 61) {
  const Architecture architecture = sample_architecture(vocab_size);
  const StepShape shape{
      .rows = 2, .positions = 20, .grad_accum = grad_accum, .recompute = Recompute::kFull};
  return build_train_step(architecture, make_layout(architecture, 1), find_strategy("ddp"), shape)
      .program;
}

TEST_CASE("what a forward does not keep is gone with it, and made again just before its backward",
          "[program]") {
  const int grad_accum = GENERATE(1, 2);
  const StepProgram program = full_recompute(grad_accum);
  CHECK(count_ops(program, OpKind::kRecompute) == 2 * grad_accum);
  for (OpId id = 0; id < OpId(program.ops.size()); ++id) {
    const Op& op = program.ops[size_t(id)];
    const auto buffer = [&](BufferId saved) { return program.buffers[size_t(saved)]; };
    if (op.kind == OpKind::kForward && op.unit < 3) {
      for (const BufferId saved : op.buffers.saved) CHECK(buffer(saved).last == id);
    }
    if (op.kind == OpKind::kRecompute) {
      const Op& next = program.ops[size_t(id) + 1];
      CHECK(next.kind == OpKind::kBackward);
      CHECK(next.buffers.saved == op.buffers.saved);
      for (const BufferId saved : op.buffers.saved) CHECK(buffer(saved).first == id);
    }
  }
}

TEST_CASE("the last block makes its activations again only where that saves memory", "[program]") {
  // Logits of a large vocabulary make the loss the fullest operation.
  const auto [vocab_size, again] = GENERATE(table<int, int>({{61, 2}, {5000, 3}}));
  CHECK(count_ops(full_recompute(1, vocab_size), OpKind::kRecompute) == again);
}

StepProgram offloading_step(const OffloadShape& offload) {
  const Architecture architecture = sample_architecture();
  StepShape shape{.rows = 2, .positions = 20};
  shape.offload = offload;
  return build_train_step(architecture, make_layout(architecture, 1), find_strategy("ddp"), shape)
      .program;
}

TEST_CASE("what is offloaded is fetched, updated and stored once, in tiles", "[program]") {
  const double ratio = GENERATE(0.1, 0.5, 1.0);
  const size_t tile = GENERATE(1, 5000, 1 << 20);
  CAPTURE(ratio, tile);
  const StepProgram program =
      offloading_step({.optimizer = Storage::kHost, .ratio = ratio, .tile = tile});
  size_t updated = 0;
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::kUpdate) CHECK(op.update.elements.begin == updated);
    if (op.kind == OpKind::kUpdate) updated += op.update.elements.count;
  }
  CHECK(updated * sizeof(float) == program.buffers[size_t(program.gradients)].bytes);
  const int tiles = count_ops(program, OpKind::kStore);
  CHECK(count_ops(program, OpKind::kFetch) == tiles);
  CHECK(count_ops(program, OpKind::kUpdate) == tiles + int(ratio < 1));
  for (const Op& op : program.ops) {
    for (const Move& move : op.moves) {
      CHECK((move.from | move.bytes) % kOffloadAlignment == 0);
      CHECK(move.from + move.bytes <= program.buffers[size_t(move.offloaded)].bytes);
      CHECK(move.bytes <= program.buffers[size_t(move.buffer)].bytes);
      CHECK(program.buffers[size_t(move.buffer)].offset % kOffloadAlignment == 0);
    }
  }
}

TEST_CASE("a tile is fetched while the one before it is updated", "[program]") {
  const StepProgram program = offloading_step({.optimizer = Storage::kHost, .tile = 1});
  for (size_t id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    if (op.kind != OpKind::kFetch) continue;
    for (const OpId before : op.after) {
      const Op& earlier = program.ops[size_t(before)];
      if (earlier.kind == OpKind::kUpdate)
        CHECK(earlier.update.tile.number <= op.update.tile.number - 2);
    }
  }
}

TEST_CASE("an unknown strategy is a configuration error", "[program]") {
  CHECK_THROWS_WITH(find_strategy("zero9"), Catch::Contains("zero9"));
}

}  // namespace
}  // namespace gxp
