#include "lib/collective/tune/shared_ways.h"

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

using enum SharedWay;

constexpr std::array kOfOrdinary = {kCopied, kCma, kTiles};
constexpr std::array kOfCommunicator = {kCopied, kPlaced};

// Without measurements: a copy that fits a few cache lines is cheaper than to synchronise twice,
// and where ranks share CPUs, or one of them has all, the second synchronisation is dearer.
constexpr size_t kCopiedPlaced = 256;
constexpr size_t kCopiedCrowded = 8 << 10;

bool is_possible(SharedWay way, Collective collective, size_t bytes, const WayLimits& limits) {
  if (way == kCma) return limits.cma;
  return way != kCopied ||
         largest_input(collective, bytes, limits.ranks) <= most_copied(collective, limits.ranks);
}

SharedWays unmeasured_ways(Collective collective, size_t bytes, const WayLimits& limits) {
  const size_t input = largest_input(collective, bytes, limits.ranks);
  const size_t most_beside_placed =
      limits.oversubscribed || has_root(collective) ? kCopiedCrowded : kCopiedPlaced;
  return {.communicator = input <= most_beside_placed ? kCopied : kPlaced,
          .ordinary = input <= most_copied(collective, limits.ranks) ? kCopied : kTiles};
}

template <size_t kCount>
SharedWay least_of(const std::array<SharedWay, kCount>& ways, const LinkClass* measured,
                   Collective collective, size_t bytes, const WayLimits& limits) {
  SharedWay best = ways.back();
  std::optional<double> least;
  for (const SharedWay way : ways) {
    const auto seconds = seconds_of(way, measured, collective, bytes);
    if (!seconds || !is_possible(way, collective, bytes, limits)) continue;
    if (least && *least <= *seconds) continue;
    best = way;
    least = seconds;
  }
  return best;
}

// At all sizes at which one of them was measured.
CostCurve least_curve(const LinkClass& link, Collective collective, std::span<const SharedWay> ways,
                      const WayLimits& limits) {
  std::vector<double> sizes;
  for (const SharedWay way : ways) {
    const CostCurve* const curve = link.curve(way_curve_name(way, collective));
    if (curve == nullptr) continue;
    for (const CostCurve::Point& point : curve->points) sizes.push_back(point.bytes);
  }
  std::ranges::sort(sizes);
  CostCurve least;
  for (const double bytes : sizes) {
    if (!least.points.empty() && least.points.back().bytes == bytes) continue;
    std::optional<double> best;
    for (const SharedWay way : ways) {
      const auto seconds = seconds_of(way, &link, collective, size_t(bytes));
      if (!seconds || !is_possible(way, collective, size_t(bytes), limits)) continue;
      best = std::min(best.value_or(*seconds), *seconds);
    }
    if (!best) continue;
    if (!least.points.empty()) best = std::max(*best, least.points.back().seconds);
    least.points.push_back({bytes, *best});
  }
  return least;
}

}  // namespace

std::string_view to_string(SharedWay way) {
  constexpr std::array<std::string_view, 5> kNames = {"messages", "copied", "placed", "cma",
                                                      "tiles"};
  return kNames[size_t(way)];
}

std::optional<SharedWay> parse_shared_way(std::string_view name) {
  for (const SharedWay way : kOfOrdinary) {
    if (to_string(way) == name) return way;
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

std::string way_curve_name(SharedWay way, Collective collective) {
  return fmt::format("{}-{}", to_string(way), to_string(collective));
}

const LinkClass* find_ways(const Profile& profile, std::string_view transport, int ranks) {
  const auto distance = [&](const LinkClass& link) {
    return std::abs(std::log(double(link.ranks) / double(ranks)));
  };
  const LinkClass* best = nullptr;
  for (const LinkClass& link : profile.links) {
    const bool has_ways = link.curve(way_curve_name(kTiles, Collective::kAllReduce)) != nullptr;
    if (!has_ways || link.hosts > 1 || link.transport != transport) continue;
    if (best == nullptr || distance(link) < distance(*best)) best = &link;
  }
  return best;
}

std::optional<double> seconds_of(SharedWay way, const LinkClass* measured, Collective collective,
                                 size_t bytes) {
  if (measured == nullptr) return std::nullopt;
  const CostCurve* const curve = measured->curve(way_curve_name(way, collective));
  if (curve == nullptr) return std::nullopt;
  return curve->at(double(bytes));
}

SharedWays fastest_ways(const LinkClass* measured, Collective collective, size_t bytes,
                        const WayLimits& limits) {
  SharedWays ways = unmeasured_ways(collective, bytes, limits);
  if (largest_input(collective, bytes, limits.ranks) == 0) return {kCopied, kCopied};
  if (measured != nullptr) {
    ways = {.communicator = least_of(kOfCommunicator, measured, collective, bytes, limits),
            .ordinary = least_of(kOfOrdinary, measured, collective, bytes, limits)};
  }
  if (limits.wanted && is_possible(*limits.wanted, collective, bytes, limits)) {
    ways.ordinary = *limits.wanted;
    if (ways.ordinary == kCopied) ways.communicator = kCopied;
  }
  // The lines would come first, which cost what is saved.
  if (ways.ordinary != kCopied) ways.communicator = kPlaced;
  return ways;
}

std::string describe_ways(const LinkClass* measured, Collective collective, size_t bytes,
                          const WayLimits& limits, bool communicator_memory) {
  const SharedWays taken = fastest_ways(measured, collective, bytes, limits);
  const SharedWay first = communicator_memory ? taken.communicator : taken.ordinary;
  std::string text{to_string(first)};
  const auto add_time = [&](SharedWay way) {
    if (const auto seconds = seconds_of(way, measured, collective, bytes))
      text += ' ' + time_text(*seconds);
  };
  add_time(first);
  const auto add = [&](SharedWay way) {
    if (way == first || !seconds_of(way, measured, collective, bytes)) return;
    if (!is_possible(way, collective, bytes, limits)) return;
    text += fmt::format(", {}", to_string(way));
    add_time(way);
  };
  if (communicator_memory) {
    std::ranges::for_each(kOfCommunicator, add);
  } else {
    std::ranges::for_each(kOfOrdinary, add);
  }
  return text;
}

Profile with_ways(Profile profile, const LinkClass& ways, bool cma) {
  LinkClass link = find_link(profile, ways.transport, ways.ranks, 1);
  const Machine& machine = profile.machine;
  const double scale =
      machine.ranks_per_core(ways.ranks) / machine.ranks_per_core(std::max(1, link.ranks));
  for (auto& [name, curve] : link.curves) {
    for (CostCurve::Point& point : curve.points) point.seconds *= scale;
  }
  link.transport = ways.transport;
  link.ranks = ways.ranks;
  link.hosts = 1;
  for (const auto& [name, curve] : ways.curves) link.curves[name] = curve;
  const WayLimits limits{.ranks = ways.ranks, .cma = cma};
  for (const Collective collective : collectives()) {
    if (!cma) link.curves.erase(way_curve_name(kCma, collective));
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
  const LinkClass* const link = find_ways(profile, transport, ranks);
  return link != nullptr && link->ranks == ranks &&
         link->curve("halving-doubling-all-reduce") != nullptr;
}

}  // namespace gxp
