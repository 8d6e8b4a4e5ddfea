#include "lib/zero/device_calls.h"

#include "lib/base/bytes.h"

namespace gxp {
namespace {

constexpr size_t kAlignment = 64;  // of what follows another in pinned memory

bool contains(const ConstMemory& outer, const ConstMemory& inner) {
  return outer.data <= inner.data && inner.data + inner.bytes <= outer.data + outer.bytes;
}

// Where input and output begin in pinned memory: one within the other, as they are, or apart.
struct Staging {
  size_t input = 0;
  size_t output = 0;
  size_t bytes = 0;
};

Staging stage(const ConstMemory& input, const ConstMemory& output) {
  if (contains(output, input)) return {size_t(input.data - output.data), 0, output.bytes};
  if (contains(input, output)) return {0, size_t(output.data - input.data), input.bytes};
  const size_t second = round_up(input.bytes, kAlignment);
  return {0, second, second + output.bytes};
}

}  // namespace

DeviceCalls::DeviceCalls(Device& device, Stream& stream, Communicator& world,
                         const RankGroups& groups)
    : device_(device), stream_(stream), world_(world) {
  if (groups.replicas() == 1) return;
  const int rank = world.rank();
  shard_group_ = world.split(groups.group_of(rank), rank);
  replica_group_ = world.split(groups.shard_of(rank, groups.shard_size), rank);
}

Communicator& DeviceCalls::members(RankGroup group) {
  if (group == RankGroup::kShards && shard_group_) return *shard_group_;
  if (group == RankGroup::kReplicas) return *replica_group_;
  return world_;
}

void DeviceCalls::run(Communicator& communicator, const Call& call, ConstMemory input,
                      Memory output) {
  if (input.space == MemorySpace::kHost && output.space == MemorySpace::kHost)
    return communicator.run(call, input, output);
  if (communicator.reaches(device_.space())) {
    stream_.finish(Deadline::after(kComputeTimeout));
    return communicator.run(call, input, output);
  }
  const Staging staging = stage(input, output);
  if (pinned_.memory().bytes < staging.bytes) {
    pinned_ = {};  // not both at a time
    pinned_ = device_.allocate_host(staging.bytes);
  }
  const Memory from = pinned_.memory().slice(staging.input, input.bytes);
  const Memory to = pinned_.memory().slice(staging.output, output.bytes);
  stream_.copy(from, input);
  stream_.finish(Deadline::after(kComputeTimeout));
  communicator.run(call, from, to);
  stream_.copy(output, to);
  stream_.finish(Deadline::after(kComputeTimeout));
}

void DeviceCalls::run_in_place(RankGroup group, const Call& call, Memory data) {
  Communicator& communicator = members(group);
  const InPlace c = in_place(call, data, communicator.rank(), communicator.world_size());
  run(communicator, c.call, c.input, c.output);
}

void DeviceCalls::sum(RankGroup group, Memory data, DType dtype) {
  run_in_place(group, {.collective = Collective::kAllReduce, .dtype = dtype, .op = ReduceOp::kSum},
               data);
}

void DeviceCalls::reduce_scatter(RankGroup group, Memory data, DType dtype) {
  run_in_place(group,
               {.collective = Collective::kReduceScatter, .dtype = dtype, .op = ReduceOp::kSum},
               data);
}

void DeviceCalls::all_gather(RankGroup group, Memory data, DType dtype) {
  run_in_place(group, {.collective = Collective::kAllGather, .dtype = dtype}, data);
}

void DeviceCalls::all_gather(RankGroup group, ConstMemory shard, Memory whole, DType dtype) {
  const size_t count = whole.bytes / size_of(dtype);
  run(members(group), {.collective = Collective::kAllGather, .dtype = dtype, .count = count}, shard,
      whole);
}

}  // namespace gxp
