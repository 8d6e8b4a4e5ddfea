#include "lib/forecast/traffic.h"

#include <algorithm>
#include <array>
#include <map>

#include "lib/base/error.h"
#include "lib/collective/cost_model.h"
#include "lib/collective/recorder.h"
#include "lib/transport/shared_space.h"

namespace gxp {
namespace {

// The whole buffer that a collective works on: what the operation writes first.
uint64_t written_bytes(const Op& op) {
  const auto written = std::ranges::find_if(op.uses, &BufferUse::write);
  GXP_ASSERT(written != op.uses.end());
  return written->bytes.count;
}

Call make_call(Collective collective, DType dtype, uint64_t bytes) {
  return {.collective = collective, .dtype = dtype, .count = bytes / size_of(dtype)};
}

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
  explicit TrafficModel(const Network& network)
      : network_(network),
        topology_{.world_size = network.world_size,
                  .hosts = network.hosts,
                  .transport = network.transport,
                  .shared_space = network.shared_space && network.world_size > 1},
        model_(topology_, network.profile) {}

  OpTraffic of(OpId id, const Call& call) {
    const Key key = {uint64_t(call.collective), uint64_t(call.dtype), call.count};
    auto known = known_.find(key);
    if (known == known_.end()) known = known_.emplace(key, plan(call)).first;
    known->second.op = id;
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

  const Network& network_;
  Topology topology_;
  CostModel model_;
  std::map<Key, OpTraffic> known_;
};

}  // namespace

std::optional<Call> call_of(const Op& op) {
  if (op.lane != Lane::kComm) return std::nullopt;
  const uint64_t bytes = written_bytes(op);
  switch (op.kind) {
    case OpKind::kGatherParameters:
      return make_call(Collective::kAllGather, DType::kF32, bytes);
    case OpKind::kReduceGradients:
      // A bucket stays whole on every rank; a unit goes to the ranks' shards.
      return make_call(op.unit >= 0 ? Collective::kReduceScatter : Collective::kAllReduce,
                       DType::kF32, bytes);
    case OpKind::kReduceLoss:
      return make_call(Collective::kAllReduce, DType::kF64, bytes);
    case OpKind::kGatherNorm:
      return make_call(Collective::kAllGather, DType::kF64, bytes);
    default:
      fail(ErrorKind::kInternal, "plan {}: no collective is known for it", describe(op));
  }
}

std::vector<OpTraffic> traffic_of(const StepProgram& program, const Network& network) {
  TrafficModel model(network);
  std::vector<OpTraffic> traffic;
  for (size_t id = 0; id < program.ops.size(); ++id) {
    if (const auto call = call_of(program.ops[id])) traffic.push_back(model.of(OpId(id), *call));
  }
  return traffic;
}

OpTraffic traffic_of(const Call& call, const Network& network) {
  return TrafficModel(network).of(0, call);
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
