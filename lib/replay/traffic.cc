#include "lib/replay/traffic.h"

#include <algorithm>
#include <array>
#include <map>

#include "lib/base/error.h"
#include "lib/collective/algorithm/schedule.h"
#include "lib/collective/tune/cost_model.h"
#include "lib/collective/tune/shared_selection.h"
#include "lib/transport/context.h"

namespace gxp {
namespace {

// The collectives of ranks that are one communicator, by their number in it.
class GroupTraffic {
 public:
  GroupTraffic(const Network& network, std::vector<int> hosts, RankPlan plan, int world_size)
      : network_(network),
        hosts_(number_hosts(hosts)),
        plan_(std::move(plan)),
        topology_{.world_size = world_size,
                  .hosts = hosts_,
                  .transport = network.transport,
                  .shared_arena = network.shared_arena && world_size > 1 && hosts_.empty(),
                  .orders = orders_of(plan_)},
        model_(topology_, network.profile) {}

  const OpTraffic& of(const Call& call) {
    const Key key = {uint64_t(call.collective), uint64_t(call.dtype), call.count};
    auto known = known_.find(key);
    if (known == known_.end()) known = known_.emplace(key, plan(call)).first;
    return known->second;
  }

 private:
  using Key = std::array<uint64_t, 3>;

  // The trainer's buffers are ordinary memory.
  [[nodiscard]] AlgorithmPlan plan_of(const Call& call) const {
    const MethodLimits limits{
        .ranks = topology_.world_size, .cma = true, .wanted = wanted_method(network_.choice)};
    return select_with_sharing(call, network_.choice, model_, limits, MemoryOrigin::kOrdinary);
  }

  // Formulas do not tell hosts apart.
  [[nodiscard]] SentElements sent_by(const Algorithm& algorithm, int rank,
                                     const CallShape& shape) const {
    if (hosts_.empty()) return {.all = elements_sent(algorithm, rank, shape)};
    return count_sent(algorithm, rank, shape);
  }

  [[nodiscard]] OpTraffic plan(const Call& call) const {
    const size_t element_bytes = size_of(call.dtype);
    OpTraffic traffic;
    traffic.call = call;
    traffic.plan = plan_of(call);
    const Algorithm& algorithm = *traffic.plan.algorithm;
    const CallShape shape = shape_of(call, traffic.plan, topology_);
    for (int rank = 0; rank < topology_.world_size; ++rank) {
      const SentElements sent = sent_by(algorithm, rank, shape);
      traffic.sent.push_back(sent.all * element_bytes);
      traffic.between_hosts.push_back(sent.between_hosts * element_bytes);
    }
    traffic.scratch.resize(traffic.sent.size());
    if (algorithm.scratch == nullptr || model_.in_shared_memory(algorithm)) return traffic;
    for (int rank = 0; rank < topology_.world_size; ++rank)
      traffic.scratch[size_t(rank)] = algorithm.scratch(rank, shape) * element_bytes;
    return traffic;
  }

  const Network& network_;
  std::vector<int> hosts_;  // of the members
  RankPlan plan_;           // of the members
  GroupTopology topology_;
  CostModel model_;
  std::map<Key, OpTraffic> known_;
};

// The communicators of each kind, as the trainer splits them.
class TrafficModel {
 public:
  TrafficModel(const RankGroups& groups, const Network& network)
      : groups_(groups), network_(network) {}

  OpTraffic of(OpId id, RankGroup group, const Call& call) {
    OpTraffic all{.op = id,
                  // Without replicas, a group of shards is the world's communicator.
                  .group = groups_.replicas() == 1 ? RankGroup::kWorld : group,
                  .call = call,
                  .plan = {},
                  .sent = nothing_of_each(),
                  .between_hosts = nothing_of_each(),
                  .scratch = nothing_of_each()};
    for (int rank = 0; rank < network_.world_size; ++rank) {
      const std::vector<int> members = groups_.members(group, rank);
      if (members.front() != rank) continue;  // told with that one
      const OpTraffic& part = traffic_among(members).of(call);
      if (all.plan.algorithm == nullptr || part.plan.predicted_seconds > all.plan.predicted_seconds)
        all.plan = part.plan;
      for (size_t i = 0; i < members.size(); ++i) {
        all.sent[size_t(members[i])] = part.sent[i];
        all.between_hosts[size_t(members[i])] = part.between_hosts[i];
        all.scratch[size_t(members[i])] = part.scratch[i];
      }
    }
    return all;
  }

 private:
  using Key = std::array<std::vector<int>, 4>;

  [[nodiscard]] std::vector<uint64_t> nothing_of_each() const {
    return std::vector<uint64_t>(size_t(network_.world_size), 0);
  }

  // Groups whose members lie on hosts and send in the same pattern share one.
  GroupTraffic& traffic_among(const std::vector<int>& members) {
    std::vector<int> hosts;
    for (const int rank : members)
      hosts.push_back(network_.hosts.empty() ? 0 : network_.hosts[size_t(rank)]);
    RankPlan plan = plan_of_members(network_.plan, members);
    const Key key = {std::vector{int(members.size())}, number_hosts(hosts), plan.rings,
                     plan.groups};
    return known_.try_emplace(key, network_, std::move(hosts), std::move(plan), int(members.size()))
        .first->second;
  }

  const RankGroups groups_;
  const Network& network_;
  std::map<Key, GroupTraffic> known_;
};

uint64_t sum_of_rank(const std::vector<OpTraffic>& traffic,
                     std::vector<uint64_t> OpTraffic::*by_rank, int rank) {
  uint64_t sum = 0;
  for (const OpTraffic& op : traffic) sum += (op.*by_rank)[size_t(rank)];
  return sum;
}

}  // namespace

std::optional<Call> call_of(const Op& op) {
  if (op.lane != Lane::kComm) return std::nullopt;
  const auto call = [&](Collective collective) {
    return Call{
        .collective = collective, .dtype = op.collective.dtype, .count = op.collective.count};
  };
  const OpRanks ranks = row_of(op.kind).ranks;
  if (ranks == OpRanks::kAlone)
    fail(ErrorKind::kInternal, "plan {}: no collective is known for it", describe(op));
  if (ranks == OpRanks::kGathers) return call(Collective::kAllGather);
  return call(op.collective.scatter ? Collective::kReduceScatter : Collective::kAllReduce);
}

std::vector<OpTraffic> traffic_of(const StepProgram& program, const Network& network) {
  TrafficModel model(program.groups, network);
  std::vector<OpTraffic> traffic;
  for (size_t id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    if (const auto call = call_of(op))
      traffic.push_back(model.of(OpId(id), op.collective.group, *call));
  }
  return traffic;
}

OpTraffic traffic_of(const Call& call, const Network& network) {
  return TrafficModel({network.world_size, network.world_size}, network)
      .of(-1, RankGroup::kWorld, call);
}

uint64_t sent_by(const std::vector<OpTraffic>& traffic, int rank) {
  return sum_of_rank(traffic, &OpTraffic::sent, rank);
}

uint64_t sent_between_hosts_by(const std::vector<OpTraffic>& traffic, int rank) {
  return sum_of_rank(traffic, &OpTraffic::between_hosts, rank);
}

uint64_t scratch_of(const std::vector<OpTraffic>& traffic, int rank) {
  std::array<uint64_t, 3> most{};  // by RankGroup
  for (const OpTraffic& op : traffic) {
    uint64_t& of_group = most[size_t(op.group)];
    of_group = std::max(of_group, op.scratch[size_t(rank)]);
  }
  return most[0] + most[1] + most[2];
}

}  // namespace gxp
