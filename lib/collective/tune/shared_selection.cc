#include "lib/collective/tune/shared_selection.h"

#include <fmt/format.h>

namespace gxp {
namespace {

// Of the synchronisation in which the ranks learn where the others' memory is.
double handshake_seconds(const LinkClass* measured) {
  const CostCurve* const barrier =
      measured == nullptr
          ? nullptr
          : measured->curve(shared_curve_name(Collective::kBarrier, MemoryOrigin::kOrdinary));
  return barrier == nullptr ? 0 : barrier->at(0);
}

bool leaves_open(const SelectionSettings& settings) {
  return settings.algorithm == "auto" || wanted_method(settings);
}

}  // namespace

std::optional<SharedMethod> wanted_method(const SelectionSettings& settings) {
  return parse_shared_method(settings.algorithm);
}

AlgorithmPlan select_with_sharing(const Call& call, const SelectionSettings& settings,
                                  const CostModel& model, const MethodLimits& limits,
                                  MemoryOrigin origin) {
  const size_t bytes = call.bytes();
  const bool ordinary = origin == MemoryOrigin::kOrdinary;
  const GroupTopology& topology = model.topology();
  const auto select = [&](const SelectionSettings& how) {
    return select_algorithm(call, how, model, origin);
  };
  AlgorithmPlan plan = select(settings);
  if (!topology.shared_arena) return plan;
  const LinkClass* const methods =
      find_methods(model.profile(), topology.transport, topology.world_size);
  const Algorithm* const shared_row = find_shared_algorithm(call.collective);
  if (!model.in_shared_memory(*plan.algorithm) && shared_row != nullptr && leaves_open(settings)) {
    SelectionSettings shared = settings;
    shared.algorithm = shared_row->name;
    AlgorithmPlan without_messages = select(shared);
    const bool comparable =
        messages_compete(model.profile(), topology.transport, topology.world_size);
    const double handshake = ordinary ? handshake_seconds(methods) : 0;
    if (comparable && plan.predicted_seconds + handshake < without_messages.predicted_seconds)
      return plan;
    plan = std::move(without_messages);
    plan.reason =
        fmt::format("{}; ranks share memory", plan.reason.substr(0, plan.reason.find(';')));
  }
  if (model.in_shared_memory(*plan.algorithm)) {
    const SharedMethods taken = fastest_methods(methods, call.collective, bytes, limits);
    plan.method = ordinary ? taken.ordinary : taken.communicator;
    plan.reason += "; by " + describe_methods(methods, call.collective, bytes, limits, !ordinary);
    if (!limits.wanted) plan.reason += ", until calls measure another as faster";
  }
  return plan;
}

}  // namespace gxp
