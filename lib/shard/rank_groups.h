// Ranks in groups: a shard group is `shard_size` neighbours, rank 0 on, that hold one copy of
// everything between them; the ranks that hold the same shard of their groups' copies are replicas
// of each other. One group of all ranks: sharding without replicas.
#pragma once

#include <vector>

#include "lib/base/error.h"

namespace gxp {

// The ranks of a run, equally many on each host, host by host.
struct RanksOnHosts {
  RanksOnHosts(int ranks, int on_hosts = 1) : world_size(ranks), hosts(on_hosts) {}
  int world_size;
  int hosts;
};

enum class RankGroup { kWorld, kShards, kReplicas };

struct RankGroups {
  int world_size = 1;
  int shard_size = 1;  // divides world_size
  int hosts = 1;       // of the ranks, equally many on each, host by host

  [[nodiscard]] int replicas() const { return world_size / shard_size; }
  // The members of the group that `rank` is in, by their number in the group.
  [[nodiscard]] std::vector<int> members(RankGroup group, int rank) const {
    int first = 0;
    int count = world_size;
    int step = 1;
    if (group == RankGroup::kShards) {
      first = rank - rank % shard_size;
      count = shard_size;
    } else if (group == RankGroup::kReplicas) {
      first = rank % shard_size;
      count = replicas();
      step = shard_size;
    }
    std::vector<int> ranks;
    for (int i = 0; i < count; ++i) ranks.push_back(first + i * step);
    return ranks;
  }
  // Hosts of a group: one for shard groups that are smaller than the world, which must then lie
  // within hosts.
  [[nodiscard]] int hosts_of(RankGroup group) const {
    return group == RankGroup::kShards && shard_size < world_size ? 1 : hosts;
  }
  // Ranks of a group on each of them.
  [[nodiscard]] int ranks_of_host(RankGroup group) const {
    return int(members(group, 0).size()) / hosts_of(group);
  }
  [[nodiscard]] int group_of(int rank) const { return rank / shard_size; }
  // Which of `shards` equal parts `rank` holds. Its part of world_size parts lies within its part
  // of shard_size parts.
  [[nodiscard]] int shard_of(int rank, int shards) const {
    if (shards == 1) return 0;
    const int shard = rank % shard_size;
    if (shards == shard_size) return shard;
    GXP_ASSERT(shards == world_size);
    return shard * replicas() + group_of(rank);
  }
  // shard_of(rank, world_size) backwards.
  [[nodiscard]] int owner_of(int shard) const {
    return shard % replicas() * shard_size + shard / replicas();
  }
};

}  // namespace gxp
