#include "lib/zero/memory/program_memory.h"

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/program/sample_programs.h"

namespace gxp {
namespace {

TEST_CASE("a program's memory is counted by kind, the arena included", "[zero]") {
  const StepProgram program = sample_step(2, 1, 1 << 20).program;
  const auto device = make_cpu_device();
  const ProgramMemory memory(*device, program);
  const MemoryUse use = device->tracker().live();
  const uint64_t parameters = program.buffers[size_t(program.parameters)].bytes;
  CHECK(use[MemoryKind::kParameters] == parameters);
  CHECK(use[MemoryKind::kGradients] == parameters);
  CHECK(use[MemoryKind::kOptimizer] == 2 * parameters);
  CHECK(use[MemoryKind::kActivations] + use[MemoryKind::kWorkspace] == program.arena_bytes);
}

TEST_CASE("a forward pass borrows parameters and arena from the step", "[zero]") {
  const Architecture architecture = sample_architecture();
  const ParameterLayout layout = make_layout(architecture, 1);
  const StepShape shape{.rows = 2, .positions = 20};
  const StepProgram step =
      build_train_step(architecture, layout, find_strategy("ddp"), shape).program;
  const StepProgram pass =
      build_forward(architecture, layout, find_strategy("ddp"), shape, OpKind::kEvaluateLoss);
  const auto device = make_cpu_device();
  const ProgramMemory base(*device, step);
  const uint64_t before = device->tracker().live().total();
  const ProgramMemory borrowed(*device, pass, base);
  CHECK(device->tracker().live().total() == before);
  CHECK(borrowed.of(pass.parameters).data == base.of(step.parameters).data);
}

TEST_CASE("a use names the bytes that its buffer has at that place", "[zero]") {
  const StepProgram program = sample_step(1, 1, 1 << 20).program;
  const auto device = make_cpu_device();
  const ProgramMemory memory(*device, program);
  const Access access = memory.access({program.gradients, {64, 128}, true});
  CHECK(access.data == memory.of(program.gradients).data + 64);
  CHECK(access.bytes == 128);
  CHECK(access.write);
}

}  // namespace
}  // namespace gxp
