#include "lib/collective/tune/profile.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "lib/base/error.h"

namespace gxp {
namespace {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

// The nearest by the ratio of ranks; null if there is none.
const LinkClass* nearest(const Profile& profile, std::string_view transport, int ranks, int hosts) {
  const auto distance = [&](const LinkClass& link) {
    return std::abs(
        std::log(double(hosts > 1 ? link.hosts : link.ranks) / double(hosts > 1 ? hosts : ranks)));
  };
  const LinkClass* best = nullptr;
  for (const LinkClass& link : profile.links) {
    if (link.transport != transport || (link.hosts > 1) != (hosts > 1)) continue;
    if (best == nullptr || distance(link) < distance(*best)) best = &link;
  }
  return best;
}

}  // namespace

double CostCurve::at(double bytes) const {
  GXP_ASSERT(!points.empty());
  const auto upper = std::ranges::lower_bound(points, bytes, {}, &Point::bytes);
  if (upper == points.begin()) return points.front().seconds;
  if (upper == points.end()) return points.back().seconds * bytes / points.back().bytes;
  const Point& low = *(upper - 1);
  const Point& high = *upper;
  const double part = std::log(bytes / low.bytes) / std::log(high.bytes / low.bytes);
  return low.seconds * std::pow(high.seconds / low.seconds, part);
}

const CostCurve* LinkClass::curve(std::string_view name) const {
  const auto found = curves.find(name);
  return found == curves.end() ? nullptr : &found->second;
}

double CostCurve::at_part(double bytes, double whole) const {
  if (bytes <= 0 || whole <= bytes) return at(bytes);
  return std::max(at(bytes), at(whole) * bytes / whole);
}

std::string shared_curve_name(Collective collective, MemoryOrigin origin) {
  return fmt::format("{}-{}", origin == MemoryOrigin::kOrdinary ? "staged" : "direct",
                     to_string(collective));
}

std::string message_curve_name(const Algorithm& algorithm) {
  return fmt::format("{}-{}", algorithm.name, to_string(algorithm.collective));
}

Machine this_machine() {
  Machine machine;
  machine.cpu = cpu_name();
  machine.cores = int(sysconf(_SC_NPROCESSORS_ONLN));  // a rank may be bound to some
  utsname name{};
  machine.linux_release = uname(&name) == 0 ? name.release : "unknown";
  return machine;
}

void Profile::merge(const Profile& other) {
  for (const LinkClass& theirs : other.links) {
    const auto same = [&](const LinkClass& ours) {
      return ours.transport == theirs.transport && ours.ranks == theirs.ranks &&
             ours.hosts == theirs.hosts;
    };
    std::erase_if(links, same);
    links.push_back(theirs);
  }
  machine = other.machine;
}

const LinkClass& find_link(const Profile& profile, std::string_view transport, int ranks,
                           int hosts) {
  // One that nobody has measured is taken for the first that is built in for as few or many hosts.
  const auto same_reach = [&](const LinkClass& link) { return (link.hosts > 1) == (hosts > 1); };
  const auto stand_in = std::ranges::find_if(builtin_profile().links, same_reach);
  GXP_ASSERT(stand_in != builtin_profile().links.end());
  for (const std::string_view name : {transport, std::string_view(stand_in->transport)}) {
    for (const Profile* source : {&profile, &builtin_profile()}) {
      if (const LinkClass* link = nearest(*source, name, ranks, hosts)) return *link;
    }
  }
  GXP_ASSERT(false);  // the built-in profile has both
}

std::string default_profile_path(const Environment& environment) {
  if (const auto* path = find_variable(environment, "GXP_PROFILE")) return *path;
  const std::string folder = user_cache_folder(environment);
  return folder.empty() ? "" : folder + "/profile.toml";
}

Profile find_profile(const std::string& name, const Environment& environment) {
  if (name == "builtin") return builtin_profile();
  if (!name.empty()) return load_profile(name);
  const std::string path = default_profile_path(environment);
  std::error_code unreachable;
  return std::filesystem::exists(path, unreachable) ? load_profile(path) : builtin_profile();
}

}  // namespace gxp
