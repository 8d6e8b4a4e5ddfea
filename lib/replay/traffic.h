// The ranks' traffic in a step: the collective of each operation of a step program, the
// algorithm that the ranks would choose for it, and the bytes that its schedule has each rank send.
// Pure: the same functions as the ranks use, without ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/collective/algorithm/call.h"
#include "lib/collective/compress/host_parts.h"
#include "lib/collective/tune/profile.h"
#include "lib/collective/tune/selection.h"
#include "lib/program/step_program.h"
#include "lib/topo/plan/rank_plan.h"

namespace gxp {

// The links between the ranks, and their settings for choosing algorithms.
struct Network {
  int world_size = 1;
  std::vector<int> hosts{};       // of each rank, numbered from 0; empty: all on one
  std::string transport = "shm";  // names the link class
  bool shared_arena = true;       // ranks of one host see each other's memory
  SelectionSettings choice{};
  Profile profile = builtin_profile();
  RankPlan plan{};  // of comm.topology
};

// The collective that the trainer calls for an operation of the comm lane, in the communicator of
// `op.group`; none for operations of other lanes.
std::optional<Call> call_of(const Op& op);

struct OpTraffic {
  OpId op = -1;  // -1: of no operation
  RankGroup group = RankGroup::kWorld;
  Call call;
  AlgorithmPlan plan;                   // where groups differ: that of the slowest
  std::vector<uint64_t> sent;           // bytes, by rank: what the transport's counters count
  std::vector<uint64_t> between_hosts;  // of them, those to other hosts
  // Bytes that each rank needs besides its buffers; the communicator keeps them for later calls.
  std::vector<uint64_t> scratch;
  // Likewise, of the communicators of the ranks of a host and of those of one place on each, where a
  // sum is compressed between hosts. Its time is without that of encoding.
  std::vector<uint64_t> scratch_within_hosts{}, scratch_between_hosts{};
};

// Every collective of one run of the program, in order. Cost: a few 100 us for the cost model of
// each kind of group, some us for each different call; where there are several hosts, that of its
// steps.
std::vector<OpTraffic> traffic_of(const StepProgram& program, const Network& network);

// The place of a rank in a group, among the hosts of the group.
HostPlace place_of(const RankGroups& groups, RankGroup group, int rank);

// One call of all ranks.
OpTraffic traffic_of(const Call& call, const Network& network);

// Sums over all of them: the bytes that rank `rank` sends, and those to other hosts; and the most
// scratch that its communicators need besides its buffers.
uint64_t sent_by(const std::vector<OpTraffic>& traffic, int rank);
uint64_t sent_between_hosts_by(const std::vector<OpTraffic>& traffic, int rank);
uint64_t scratch_of(const std::vector<OpTraffic>& traffic, int rank);

}  // namespace gxp
