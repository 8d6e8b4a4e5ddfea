#include "lib/forecast/traffic.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "lib/base/error.h"
#include "lib/collective/cost_model.h"
#include "lib/collective/recorder.h"
#include "lib/transport/shared_space.h"

namespace gxp {
namespace {

// Hosts of unequal size make the formula of a hierarchical algorithm a bound.
bool formula_is_exact(const CallShape& shape) {
  std::map<int, int> sizes;
  for (const int host : shape.hosts) ++sizes[host];
  return std::ranges::all_of(
      sizes, [&](const auto& size) { return size.second == sizes.begin()->second; });
}

std::vector<uint64_t> elements_sent(const Algorithm& algorithm, const CallShape& shape) {
  std::vector<uint64_t> sent(size_t(shape.world_size), 0);
  if (formula_is_exact(shape)) {
    for (int rank = 0; rank < shape.world_size; ++rank)
      sent[size_t(rank)] = algorithm.elements_sent(rank, shape);
    return sent;
  }
  const Schedule schedule = record(algorithm, shape);
  for (size_t rank = 0; rank < schedule.size(); ++rank) {
    for (const CollectiveStep& step : schedule[rank])
      if (step.to != kNobody) sent[rank] += step.leaving.count;
  }
  return sent;
}

class TrafficModel {
 public:
  explicit TrafficModel(Network network)
      : network_(std::move(network)),
        topology_{.world_size = network_.world_size,
                  .hosts = network_.hosts,
                  .transport = network_.transport,
                  .shared_space = network_.shared_space && network_.world_size > 1},
        model_(topology_, network_.profile) {}
  TrafficModel(const TrafficModel&) = delete;
  TrafficModel& operator=(const TrafficModel&) = delete;

  const OpTraffic& of(const Call& call) {
    const Key key = {uint64_t(call.collective), uint64_t(call.dtype), call.count};
    auto known = known_.find(key);
    if (known == known_.end()) known = known_.emplace(key, plan(call)).first;
    return known->second;
  }

 private:
  using Key = std::array<uint64_t, 3>;

  [[nodiscard]] bool is_native(const Plan& plan) const {
    return topology_.shared_space && plan.algorithm->name == "direct";
  }

  // In shared memory `direct` is one routine without messages. It also runs what would go by
  // messages, if that is small and `direct` is best for memory of the communicator's own, since no
  // rank knows of the others' memory before they meet (NativeEngine::execute_shared).
  [[nodiscard]] Plan plan_of(const Call& call) const {
    const size_t bytes = call.count * size_of(call.dtype);
    // The trainer's buffers are ordinary memory: staged.
    Plan plan = choose(call.collective, call.dtype, bytes, network_.choice, model_, true);
    if (!topology_.shared_space || is_native(plan)) return plan;
    const size_t input = extents_of(call, 0, network_.world_size).input.count * size_of(call.dtype);
    if (input > 2 * SharedSlots::kSmallBytes / size_t(network_.world_size)) return plan;
    Plan own = choose(call.collective, call.dtype, bytes, network_.choice, model_, false);
    return is_native(own) ? own : plan;
  }

  [[nodiscard]] OpTraffic plan(const Call& call) const {
    const size_t element_bytes = size_of(call.dtype);
    OpTraffic traffic;
    traffic.call = call;
    traffic.plan = plan_of(call);
    const Algorithm& algorithm = *traffic.plan.algorithm;
    const CallShape shape{.world_size = network_.world_size,
                          .count = call.count,
                          .channels = traffic.plan.channels,
                          .segment = traffic.plan.segment_bytes / element_bytes,
                          .hosts = network_.hosts};
    traffic.sent = elements_sent(algorithm, shape);
    for (uint64_t& sent : traffic.sent) sent *= element_bytes;
    traffic.scratch.resize(traffic.sent.size());
    if (algorithm.scratch == nullptr || is_native(traffic.plan)) return traffic;
    for (int rank = 0; rank < network_.world_size; ++rank)
      traffic.scratch[size_t(rank)] = algorithm.scratch(rank, shape) * element_bytes;
    return traffic;
  }

  const Network network_;
  Topology topology_;
  CostModel model_;
  std::map<Key, OpTraffic> known_;
};

// What joins some of the ranks, by their number among them.
Network part_of(const Network& network, const std::vector<int>& members) {
  Network part = network;
  part.world_size = int(members.size());
  part.hosts.clear();
  std::map<int, int> numbers;
  for (const int rank : members) {
    if (network.hosts.empty()) break;
    const int host = network.hosts[size_t(rank)];
    part.hosts.push_back(numbers.emplace(host, int(numbers.size())).first->second);
  }
  return part;
}

// The groups of ranks of a program, each with its own model.
class GroupTraffic {
 public:
  GroupTraffic(const RankGroups& groups, const Network& network)
      : groups_(groups), network_(network) {}

  // The call of every group of this kind, at once.
  OpTraffic of(OpId id, RankGroup group, const Call& call) {
    OpTraffic all;
    all.sent.resize(size_t(network_.world_size));
    all.scratch.resize(size_t(network_.world_size));
    for (int rank = network_.world_size - 1; rank >= 0; --rank) {
      const std::vector<int> members = groups_.members(group, rank);
      if (members.front() != rank) continue;  // told with that one
      const OpTraffic& part = model_of(members).of(call);
      all.call = part.call;
      all.plan = part.plan;
      for (size_t i = 0; i < members.size(); ++i) {
        all.sent[size_t(members[i])] = part.sent[i];
        all.scratch[size_t(members[i])] = part.scratch[i];
      }
    }
    all.op = id;
    return all;
  }

 private:
  TrafficModel& model_of(const std::vector<int>& members) {
    const Network part = part_of(network_, members);
    auto& model = models_[{part.world_size, part.hosts}];
    if (!model) model = std::make_unique<TrafficModel>(part);
    return *model;
  }

  const RankGroups groups_;
  const Network& network_;
  // Groups that see the same hosts share a model.
  std::map<std::pair<int, std::vector<int>>, std::unique_ptr<TrafficModel>> models_;
};

}  // namespace

std::optional<Call> call_of(const Op& op) {
  if (op.lane != Lane::kComm) return std::nullopt;
  const auto call = [&](Collective collective, DType dtype) {
    return Call{.collective = collective, .dtype = dtype, .count = op.count};
  };
  switch (op.kind) {
    case OpKind::kGatherParameters:
    case OpKind::kGatherDirections:
      return call(Collective::kAllGather, DType::kF32);
    case OpKind::kReduceGradients:
      return call(op.scatter ? Collective::kReduceScatter : Collective::kAllReduce, DType::kF32);
    case OpKind::kReduceLoss:
      return call(Collective::kAllReduce, DType::kF64);
    case OpKind::kGatherNorm:
      return call(Collective::kAllGather, DType::kF64);
    default:
      fail(ErrorKind::kInternal, "plan {}: no collective is known for it", describe(op));
  }
}

std::vector<OpTraffic> traffic_of(const StepProgram& program, const Network& network) {
  GroupTraffic groups(program.groups, network);
  std::vector<OpTraffic> traffic;
  for (size_t id = 0; id < program.ops.size(); ++id) {
    if (const auto call = call_of(program.ops[id]))
      traffic.push_back(groups.of(OpId(id), program.ops[id].group, *call));
  }
  return traffic;
}

OpTraffic traffic_of(const Call& call, const Network& network) {
  return TrafficModel(network).of(call);
}

uint64_t sent_by(const std::vector<OpTraffic>& traffic, int rank) {
  uint64_t sent = 0;
  for (const OpTraffic& op : traffic) sent += op.sent[size_t(rank)];
  return sent;
}

uint64_t scratch_of(const std::vector<OpTraffic>& traffic, int rank) {
  uint64_t most = 0;
  for (const OpTraffic& op : traffic) most = std::max(most, op.scratch[size_t(rank)]);
  return most;
}

}  // namespace gxp
