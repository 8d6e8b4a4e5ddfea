#include "lib/collective/tune/shared_methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "lib/base/text/time_text.h"
#include "lib/collective/algorithm/call.h"
#include "lib/transport/arena/shared_arena.h"

namespace gxp {
namespace {

using enum SharedMethod;

constexpr std::array kOfOrdinary = {kCopied, kCma, kTiles};
constexpr std::array kOfCommunicator = {kCopied, kPlaced};

// Without measurements: a copy that fits a few cache lines is cheaper than to synchronise twice,
// and where ranks share CPUs, or one of them has all, the second synchronisation is dearer.
constexpr size_t kCopiedPlaced = 256;
constexpr size_t kCopiedCrowded = 8 << 10;

bool is_possible(SharedMethod method, Collective collective, size_t bytes,
                 const MethodLimits& limits) {
  if (method == kCma) return limits.cma;
  return method != kCopied ||
         largest_input(collective, bytes, limits.ranks) <= most_copied(collective, limits.ranks);
}

SharedMethods unmeasured_methods(Collective collective, size_t bytes, const MethodLimits& limits) {
  const size_t input = largest_input(collective, bytes, limits.ranks);
  const size_t most_beside_placed =
      limits.oversubscribed || has_root(collective) ? kCopiedCrowded : kCopiedPlaced;
  return {.communicator = input <= most_beside_placed ? kCopied : kPlaced,
          .ordinary = input <= most_copied(collective, limits.ranks) ? kCopied : kTiles};
}

template <size_t kCount>
SharedMethod least_of(const std::array<SharedMethod, kCount>& methods, const LinkClass* measured,
                      Collective collective, size_t bytes, const MethodLimits& limits) {
  SharedMethod best = methods.back();
  std::optional<double> least;
  for (const SharedMethod method : methods) {
    const auto seconds = seconds_of(method, measured, collective, bytes);
    if (!seconds || !is_possible(method, collective, bytes, limits)) continue;
    if (least && *least <= *seconds) continue;
    best = method;
    least = seconds;
  }
  return best;
}

// At all sizes at which one of them was measured.
CostCurve least_curve(const LinkClass& link, Collective collective,
                      std::span<const SharedMethod> methods, const MethodLimits& limits) {
  std::vector<double> sizes;
  for (const SharedMethod method : methods) {
    const CostCurve* const curve = link.curve(method_curve_name(method, collective));
    if (curve == nullptr) continue;
    for (const CostCurve::Point& point : curve->points) sizes.push_back(point.bytes);
  }
  std::ranges::sort(sizes);
  CostCurve least;
  for (const double bytes : sizes) {
    if (!least.points.empty() && least.points.back().bytes == bytes) continue;
    std::optional<double> best;
    for (const SharedMethod method : methods) {
      const auto seconds = seconds_of(method, &link, collective, size_t(bytes));
      if (!seconds || !is_possible(method, collective, size_t(bytes), limits)) continue;
      best = std::min(best.value_or(*seconds), *seconds);
    }
    if (!best) continue;
    if (!least.points.empty()) best = std::max(*best, least.points.back().seconds);
    least.points.push_back({bytes, *best});
  }
  return least;
}

}  // namespace

std::string_view to_string(SharedMethod method) {
  constexpr std::array<std::string_view, 5> kNames = {"messages", "copied", "placed", "cma",
                                                      "tiles"};
  return kNames[size_t(method)];
}

std::optional<SharedMethod> parse_shared_method(std::string_view name) {
  for (const SharedMethod method : kOfOrdinary) {
    if (to_string(method) == name) return method;
  }
  return std::nullopt;
}

size_t largest_input(Collective collective, size_t bytes, int ranks) {
  switch (collective) {
    case Collective::kAllGather:
    case Collective::kGather:
      return (bytes + size_t(ranks) - 1) / size_t(ranks);
    case Collective::kBarrier:
      return 0;
    default:
      return bytes;
  }
}

// To reduce, each rank reads all copies: more ranks, smaller copies. Else it reads what it keeps.
size_t most_copied(Collective collective, int ranks) {
  const int readers = reduces(collective) ? std::max(ranks, 2) : 2;
  return 2 * SharedSlots::kCopiedBytes / size_t(readers);
}

std::string method_curve_name(SharedMethod method, Collective collective) {
  return fmt::format("{}-{}", to_string(method), to_string(collective));
}

const LinkClass* find_methods(const Profile& profile, std::string_view transport, int ranks) {
  const auto distance = [&](const LinkClass& link) {
    return std::abs(std::log(double(link.ranks) / double(ranks)));
  };
  const LinkClass* best = nullptr;
  for (const LinkClass& link : profile.links) {
    const bool has_methods =
        link.curve(method_curve_name(kTiles, Collective::kAllReduce)) != nullptr;
    if (!has_methods || link.hosts > 1 || link.transport != transport) continue;
    if (best == nullptr || distance(link) < distance(*best)) best = &link;
  }
  return best;
}

std::optional<double> seconds_of(SharedMethod method, const LinkClass* measured,
                                 Collective collective, size_t bytes) {
  if (measured == nullptr) return std::nullopt;
  const CostCurve* const curve = measured->curve(method_curve_name(method, collective));
  if (curve == nullptr) return std::nullopt;
  return curve->at(double(bytes));
}

SharedMethods fastest_methods(const LinkClass* measured, Collective collective, size_t bytes,
                              const MethodLimits& limits) {
  SharedMethods methods = unmeasured_methods(collective, bytes, limits);
  if (largest_input(collective, bytes, limits.ranks) == 0) return {kCopied, kCopied};
  if (measured != nullptr) {
    methods = {.communicator = least_of(kOfCommunicator, measured, collective, bytes, limits),
               .ordinary = least_of(kOfOrdinary, measured, collective, bytes, limits)};
  }
  if (limits.wanted && is_possible(*limits.wanted, collective, bytes, limits)) {
    methods.ordinary = *limits.wanted;
    if (methods.ordinary == kCopied) methods.communicator = kCopied;
  }
  // The lines would come first, which cost what is saved.
  if (methods.ordinary != kCopied) methods.communicator = kPlaced;
  return methods;
}

std::string describe_methods(const LinkClass* measured, Collective collective, size_t bytes,
                             const MethodLimits& limits, bool communicator_memory) {
  const SharedMethods taken = fastest_methods(measured, collective, bytes, limits);
  const SharedMethod first = communicator_memory ? taken.communicator : taken.ordinary;
  std::string text{to_string(first)};
  const auto add_time = [&](SharedMethod method) {
    if (const auto seconds = seconds_of(method, measured, collective, bytes))
      text += ' ' + time_text(*seconds);
  };
  add_time(first);
  const auto add = [&](SharedMethod method) {
    if (method == first || !seconds_of(method, measured, collective, bytes)) return;
    if (!is_possible(method, collective, bytes, limits)) return;
    text += fmt::format(", {}", to_string(method));
    add_time(method);
  };
  if (communicator_memory) {
    std::ranges::for_each(kOfCommunicator, add);
  } else {
    std::ranges::for_each(kOfOrdinary, add);
  }
  return text;
}

Profile with_methods(Profile profile, const LinkClass& methods, bool cma) {
  LinkClass link = find_link(profile, methods.transport, methods.ranks, 1);
  const Machine& machine = profile.machine;
  const double scale =
      machine.ranks_per_core(methods.ranks) / machine.ranks_per_core(std::max(1, link.ranks));
  for (auto& [name, curve] : link.curves) {
    for (CostCurve::Point& point : curve.points) point.seconds *= scale;
  }
  link.transport = methods.transport;
  link.ranks = methods.ranks;
  link.hosts = 1;
  for (const auto& [name, curve] : methods.curves) link.curves[name] = curve;
  const MethodLimits limits{.ranks = methods.ranks, .cma = cma};
  for (const Collective collective : collectives()) {
    if (!cma) link.curves.erase(method_curve_name(kCma, collective));
    CostCurve direct = least_curve(link, collective, kOfCommunicator, limits);
    CostCurve staged = least_curve(link, collective, kOfOrdinary, limits);
    if (!direct.points.empty())
      link.curves[shared_curve_name(collective, MemoryOrigin::kCommunicator)] = std::move(direct);
    if (!staged.points.empty())
      link.curves[shared_curve_name(collective, MemoryOrigin::kOrdinary)] = std::move(staged);
  }
  std::erase_if(profile.links, [&](const LinkClass& other) {
    return other.transport == link.transport && other.ranks == link.ranks && other.hosts == 1;
  });
  profile.links.push_back(std::move(link));
  return profile;
}

bool messages_compete(const Profile& profile, std::string_view transport, int ranks) {
  const LinkClass* const link = find_methods(profile, transport, ranks);
  return link != nullptr && link->ranks == ranks &&
         link->curve("halving-doubling-all-reduce") != nullptr;
}

}  // namespace gxp
