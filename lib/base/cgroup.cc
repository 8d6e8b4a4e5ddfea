#include "lib/base/cgroup.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace gxp {
namespace {

// Version 1 writes this, rounded down to pages, where memory has no limit.
constexpr uint64_t kNoLimit = uint64_t{1} << 62;

// The first line that begins with `key` and a number; an empty key: the file's first number.
std::optional<uint64_t> read_number(const std::string& path, std::string_view key = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::string_view text = line;
    if (!text.starts_with(key)) continue;
    text.remove_prefix(key.size());
    uint64_t number = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc())
      return number;
  }
  return std::nullopt;  // "max" is no number either
}

bool has_item(std::string_view list, std::string_view item) {
  std::istringstream items{std::string(list)};
  for (std::string one; std::getline(items, one, ',');) {
    if (one == item) return true;
  }
  return false;
}

// What /proc/self/cgroup calls this process's group in the hierarchy of `controller`; version 2 has
// none but "".
std::optional<std::string> group_in(const std::string& root, std::string_view controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:memory:/user.slice"
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool fits = controller.empty() ? controllers.empty() : has_item(controllers, controller);
    if (fits) return line.substr(second + 1);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Cgroups::Group> Cgroups::find(std::string_view controller) const {
  const auto v1 = group_in(root_, controller);
  const auto group = v1 ? v1 : group_in(root_, "");
  if (!group) return std::nullopt;
  std::ifstream file(root_ + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    // "36 35 98:0 /root /mount rw,noatime shared:1 - cgroup cgroup rw,memory", proc(5)
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream front(line), back(line.substr(dash + 3));
    std::string skipped, inside, mount, type, source, options;
    front >> skipped >> skipped >> skipped >> inside >> mount;
    back >> type >> source >> options;
    if (v1 ? type != "cgroup" || !has_item(options, controller) : type != "cgroup2") continue;
    // A container sees the part of the hierarchy that is its own.
    const bool below = inside != "/" && group->starts_with(inside);
    std::string path = root_ + mount + (below ? group->substr(inside.size()) : *group);
    if (!std::ifstream(path + "/cgroup.procs")) path = root_ + mount;
    return Group{root_ + mount, path, !v1};
  }
  return std::nullopt;
}

std::optional<uint64_t> Cgroups::tightest(std::string_view controller, const char* v1_name,
                                          const char* v2_name) const {
  const std::optional<Group> group = find(controller);
  std::optional<uint64_t> least;
  if (!group) return least;
  for (std::string path = group->path; path.size() >= group->mount.size();
       path.resize(path.rfind('/'))) {
    const auto limit = read_number(path + "/" + (group->v2 ? v2_name : v1_name));
    if (limit && *limit < kNoLimit) least = std::min(*limit, least.value_or(*limit));
  }
  return least;
}

std::optional<uint64_t> Cgroups::most_processes() const {
  return tightest("pids", "pids.max", "pids.max");
}

std::optional<uint64_t> Cgroups::memory_bytes() const {
  return tightest("memory", "memory.limit_in_bytes", "memory.max");
}

std::optional<uint64_t> Cgroups::oom_kills() const {
  const std::optional<Group> group = find("memory");
  std::optional<uint64_t> count;
  if (group)
    count = read_number(group->path + (group->v2 ? "/memory.events" : "/memory.oom_control"),
                        "oom_kill ");
  return count ? count : read_number(root_ + "/proc/vmstat", "oom_kill ");
}

}  // namespace gxp
