#include "lib/zero/sharded_memory.h"

#include "lib/collective/communicator.h"
#include "lib/shard/layout.h"

namespace gxp {

ShardedMemory::ShardedMemory(const RunPlan& plan_, Communicator& communicator, Lanes& lanes_,
                             const OffloadConfig& offload)
    : plan(plan_),
      program(plan.step.program),
      lanes(lanes_),
      groups(groups_of(plan.shape)),
      rank(communicator.rank()),
      calls(lanes.device(), lanes[Lane::kComm], communicator, groups),
      compressed(plan, calls, lanes.device(), lanes[Lane::kComm]),
      memory(lanes.device(), program, calls.work_on_device()),
      kept(calls.keep(memory.operands())),
      offloaded(program, memory, {offload.path, fmt::format("rank {}'s state", rank), offload.io},
                lanes.device(), lanes[Lane::kOffload]),
      own_parts(make_parts(plan.layout, program.optimizer_shards,
                           groups.shard_of(rank, program.optimizer_shards))),
      all_parts(make_parts(plan.layout, 1, 0)) {
  for (const KeptState& state : plan.shape.optimizer.kept) {
    const auto& parts = state.everywhere ? all_parts : own_parts;
    kept_places.push_back(
        place_state(plan.architecture, plan.layout, state, parts, program.optimizer_shards));
  }
}

Tensor ShardedMemory::wrap_at(int wrap, const FlatView& view) const {
  return memory.tensor(view.buffer).rows(view.begin, plan.layout.wraps[size_t(wrap)].flat.count);
}

Tensor ShardedMemory::own_shard(const Tensor& wrap, int shards) const {
  const size_t count = wrap.count() / size_t(shards);
  return wrap.rows(count * size_t(groups.shard_of(rank, shards)), count);
}

FlatShards ShardedMemory::gradients() const {
  return {ShardRanges(plan.layout, program.gradient_shards), memory.tensor(program.gradients)};
}

}  // namespace gxp
