#include "lib/zero/device_calls.h"

#include "lib/collective/communicator.h"

namespace gxp {

DeviceCalls::DeviceCalls(Device& device, Stream& stream, Communicator& world,
                         const RankGroups& groups)
    : device_(device), stream_(stream), world_(world) {
  if (groups.replicas() == 1) return;
  const int rank = world.rank();
  shard_group_ = world.split(groups.group_of(rank), rank);
  replica_group_ = world.split(groups.shard_of(rank, groups.shard_size), rank);
}

DeviceCalls::~DeviceCalls() = default;

bool DeviceCalls::work_on_device() const {
  const auto works = [&](const Communicator* group) {
    return group != nullptr && group->world_size() > 1 && device_.space() != MemorySpace::kHost &&
           group->supports_memory(device_.space());
  };
  return works(&world_) || works(shard_group_.get()) || works(replica_group_.get());
}

std::vector<KeptMemory> DeviceCalls::keep(const std::vector<Memory>& allocations) {
  std::vector<KeptMemory> kept;
  for (Communicator* group : {&world_, shard_group_.get(), replica_group_.get()}) {
    if (group == nullptr || group->world_size() == 1 || !group->queues_calls()) continue;
    for (const Memory& memory : allocations) kept.push_back(group->keep(memory));
  }
  return kept;
}

Communicator& DeviceCalls::members(RankGroup group) {
  if (group == RankGroup::kShards && shard_group_) return *shard_group_;
  if (group == RankGroup::kReplicas) return *replica_group_;
  return world_;
}

void DeviceCalls::run(RankGroup group, Collective collective, const Tensor& data,
                      const ConstTensor& apart) {
  Communicator& communicator = members(group);
  const auto call_on = [&](Memory whole) {
    return in_place({.collective = collective, .dtype = data.dtype}, whole, communicator.rank(),
                    communicator.world_size());
  };
  PlacedCall there = call_on(data.memory);
  if (apart.memory.data != nullptr) there.input = apart.memory;
  const bool on_host = data.memory.space == MemorySpace::kHost;
  if (!on_host && communicator.queues_calls())
    return communicator.enqueue(there.call, there.input, there.output, stream_);
  if (on_host || communicator.supports_memory(data.memory.space)) {
    if (!on_host) stream_.finish(Deadline::after(kComputeTimeout));
    return communicator.run(there.call, there.input, there.output);
  }
  const size_t bytes = data.memory.bytes;
  if (pinned_.memory().bytes < bytes) {
    pinned_ = {};  // not both at a time
    pinned_ = device_.allocate_host(bytes);
  }
  const Memory whole = pinned_.memory().slice(0, bytes);
  const PlacedCall here = call_on(whole);
  stream_.copy(whole.slice(size_t(here.input.data - whole.data), here.input.bytes), there.input);
  stream_.finish(Deadline::after(kComputeTimeout));
  communicator.run(here.call, here.input, here.output);
  stream_.copy(there.output, here.output);
  stream_.finish(Deadline::after(kComputeTimeout));
}

}  // namespace gxp
