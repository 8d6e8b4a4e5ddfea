#include "lib/collective/tune/shared_selection.h"

#include <fmt/format.h>

namespace gxp {
namespace {

// A synchronisation, in which the ranks learn where the others' memory is.
double meeting_seconds(const LinkClass* measured) {
  const CostCurve* const barrier =
      measured == nullptr ? nullptr
                          : measured->curve(native_curve_name(Collective::kBarrier, true));
  return barrier == nullptr ? 0 : barrier->at(0);
}

bool leaves_open(const SelectionSettings& settings) {
  return settings.algorithm == "auto" || wanted_way(settings);
}

}  // namespace

std::optional<SharedWay> wanted_way(const SelectionSettings& settings) {
  return parse_shared_way(settings.algorithm);
}

AlgorithmPlan select_with_sharing(const Call& call, const SelectionSettings& settings,
                                  const CostModel& model, const Profile& profile,
                                  const WayLimits& limits, bool staged) {
  const size_t bytes = call.count * size_of(call.dtype);
  const GroupTopology& topology = model.topology();
  const auto choose_with = [&](const SelectionSettings& how) {
    return select_algorithm(call.collective, call.dtype, bytes, how, model, staged);
  };
  AlgorithmPlan plan = choose_with(settings);
  if (!topology.shared_space) return plan;
  const LinkClass* const ways = find_ways(profile, topology.transport, topology.world_size);
  const Algorithm* const shared_row = find_shared_algorithm(call.collective);
  if (!model.in_shared_memory(*plan.algorithm) && shared_row != nullptr && leaves_open(settings)) {
    SelectionSettings shared = settings;
    shared.algorithm = shared_row->name;
    AlgorithmPlan without_messages = choose_with(shared);
    const bool comparable = messages_compete(profile, topology.transport, topology.world_size);
    const double meeting = staged ? meeting_seconds(ways) : 0;
    if (comparable && plan.predicted_seconds + meeting < without_messages.predicted_seconds)
      return plan;
    plan = std::move(without_messages);
    plan.reason =
        fmt::format("{}; ranks share memory", plan.reason.substr(0, plan.reason.find(';')));
  }
  if (model.in_shared_memory(*plan.algorithm)) {
    const SharedWays taken = fastest_ways(ways, call.collective, bytes, limits);
    plan.way = staged ? taken.ordinary : taken.communicator;
    plan.reason += "; by " + describe_ways(ways, call.collective, bytes, limits, !staged);
  }
  return plan;
}

}  // namespace gxp
