#include "lib/replay/explain.h"

#include <fmt/format.h>

#include <algorithm>

namespace gxp {
namespace {

constexpr size_t kMostBuffers = 12;  // of the arena, told one by one

// How many ranks share what the buffer holds a shard of; 0: it has nothing per parameter.
int shards_of(const RunPlan& plan, BufferId id) {
  const StepProgram& program = plan.step.program;
  if (program.buffers[size_t(id)].rest != kNoBuffer) return 0;  // the other part is offloaded
  if (id == program.parameters) return program.parameter_shards;
  if (id == program.gradients) return program.gradient_shards;
  for (size_t i = 0; i < program.optimizer_states.size(); ++i) {
    if (id == program.optimizer_states[i])
      return plan.shape.optimizer.kept[i].of_all ? program.optimizer_shards : 0;
  }
  return 0;
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
  const bool is_gradients = id == program.gradients;
  const size_t count = is_gradients ? plan.layout.gradient_count : plan.layout.count;
  const uint64_t each = buffer.bytes * uint64_t(shards) / count;
  term.formula = fmt::format("{} P{}", each, shards > 1 ? " / S" : "");
  term.numbers = fmt::format("{} x {}", each, count);
  if (shards > 1) term.numbers += fmt::format(" / {}", shards);
  term.source = "ZeRO, arXiv:1910.02054, section 5";
  return term;
}

std::vector<const BufferSpec*> arena_at_peak(const StepProgram& program, OpId peak) {
  std::vector<const BufferSpec*> live;
  for (const BufferSpec& buffer : program.buffers) {
    if (!buffer.persistent && buffer.first >= 0 && buffer.first <= peak && peak <= buffer.last)
      live.push_back(&buffer);
  }
  std::ranges::stable_sort(live, std::greater<>(), &BufferSpec::bytes);
  return live;
}

}  // namespace

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
  const auto live = arena_at_peak(program, memory.step.peak);
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
