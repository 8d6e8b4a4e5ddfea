#include "lib/replay/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "lib/base/error.h"
#include "lib/collective/algorithm/schedule.h"
#include "lib/collective/compress/codec.h"
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
    OpTraffic all = no_traffic(id, group, call);
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

  // A sum or gather that is compressed between hosts (compressed_sum.h, compressed_gather.h): what
  // its stages send one after the other.
  OpTraffic of_compressed(OpId id, RankGroup group, const Call& call, const Codec& codec) {
    OpTraffic all = no_traffic(id, group, call);
    all.scratch_within_hosts = all.scratch_between_hosts = nothing_of_each();
    for (int rank = 0; rank < network_.world_size; ++rank) {
      const HostPlace place = place_of(groups_, group, rank);
      const std::vector<int> members = groups_.members(group, rank);
      std::vector<int> within, between;
      for (int i = 0; i < place.ranks_of_host; ++i)
        within.push_back(members[size_t(place.host * place.ranks_of_host + i)]);
      for (int host = 0; host < place.hosts; ++host)
        between.push_back(members[size_t(host * place.ranks_of_host + place.index)]);
      AlgorithmPlan plan;
      for (const Call& stage : calls_within_host(call, place))
        plan.predicted_seconds += add_stage(all, all.scratch_within_hosts, rank, within, stage);
      for (const Call& stage : calls_between_hosts(call, place, codec)) {
        plan.predicted_seconds += add_stage(all, all.scratch_between_hosts, rank, between, stage);
        plan.algorithm = traffic_among(between).of(stage).plan.algorithm;
      }
      if (all.plan.algorithm == nullptr || plan.predicted_seconds > all.plan.predicted_seconds)
        all.plan = plan;
    }
    all.plan.reason = fmt::format("{} between hosts", codec.name);
    return all;
  }

 private:
  using Key = std::array<std::vector<int>, 4>;

  static std::vector<Call> calls_within_host(const Call& call, const HostPlace& place) {
    std::vector<Call> calls;
    if (place.ranks_of_host == 1) return calls;
    for (const HostPiece& piece : cut_for_hosts(compressed_shape(call), place)) {
      for (const Range& range : piece.within_host) {
        if (call.collective != Collective::kAllGather)
          calls.push_back({.collective = Collective::kReduceScatter,
                           .dtype = call.dtype,
                           .count = range.count});
        if (call.collective != Collective::kReduceScatter)
          calls.push_back(
              {.collective = Collective::kAllGather, .dtype = call.dtype, .count = range.count});
      }
    }
    return calls;
  }

  static std::vector<Call> calls_between_hosts(const Call& call, const HostPlace& place,
                                               const Codec& codec) {
    const std::vector<HostPiece> pieces = cut_for_hosts(compressed_shape(call), place);
    const size_t bytes = codec.wire_bytes(largest_part(pieces)) * size_t(place.hosts);
    std::vector<Call> calls;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (call.collective != Collective::kAllGather)
        calls.push_back({.collective = Collective::kAllToAll, .dtype = DType::kU8, .count = bytes});
      if (call.collective != Collective::kReduceScatter)
        calls.push_back(
            {.collective = Collective::kAllGather, .dtype = DType::kU8, .count = bytes});
    }
    return calls;
  }

  // Adds what `rank` sends in a call among `members`; returns the call's seconds.
  double add_stage(OpTraffic& all, std::vector<uint64_t>& scratch, int rank,
                   const std::vector<int>& members, const Call& call) {
    const OpTraffic& part = traffic_among(members).of(call);
    const size_t place = size_t(std::ranges::find(members, rank) - members.begin());
    all.sent[size_t(rank)] += part.sent[place];
    all.between_hosts[size_t(rank)] += part.between_hosts[place];
    scratch[size_t(rank)] = std::max(scratch[size_t(rank)], part.scratch[place]);
    return part.plan.predicted_seconds;
  }

  [[nodiscard]] OpTraffic no_traffic(OpId id, RankGroup group, const Call& call) const {
    return {.op = id,
            // Without replicas, a group of shards is the world's communicator.
            .group = groups_.replicas() == 1 ? RankGroup::kWorld : group,
            .call = call,
            .plan = {},
            .sent = nothing_of_each(),
            .between_hosts = nothing_of_each(),
            .scratch = nothing_of_each()};
  }

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
    const auto call = call_of(op);
    if (!call) continue;
    const RankGroup group = op.collective.group;
    const std::string& codec = op.collective.codec;
    const bool compressed = !codec.empty() && program.groups.hosts_of(group) > 1;
    traffic.push_back(compressed ? model.of_compressed(OpId(id), group, *call, *find_codec(codec))
                                 : model.of(OpId(id), group, *call));
  }
  return traffic;
}

HostPlace place_of(const RankGroups& groups, RankGroup group, int rank) {
  const std::vector<int> members = groups.members(group, rank);
  const int number = int(std::ranges::find(members, rank) - members.begin());
  const int ranks_of_host = groups.ranks_of_host(group);
  return {.hosts = groups.hosts_of(group),
          .ranks_of_host = ranks_of_host,
          .host = number / ranks_of_host,
          .index = number % ranks_of_host};
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
  uint64_t within = 0, between = 0;
  for (const OpTraffic& op : traffic) {
    if (op.scratch_within_hosts.empty()) continue;
    within = std::max(within, op.scratch_within_hosts[size_t(rank)]);
    between = std::max(between, op.scratch_between_hosts[size_t(rank)]);
  }
  return most[0] + most[1] + most[2] + within + between;
}

}  // namespace gxp
