// The limits of this process's control groups (cgroups), and the limits that it has hit.
//
// Under version 1 each kind of resource has a hierarchy of its own, under version 2 there is one; a
// host may have both. A limit holds for all groups below it, so the tightest up to the mount
// counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gxp {

class Cgroups {
 public:
  // `root` stands before all paths, for tests.
  explicit Cgroups(std::string root = "") : root_(std::move(root)) {}

  // Nothing where there is no limit, or no such group.
  [[nodiscard]] std::optional<uint64_t> most_processes() const;  // processes and threads: pids.max
  [[nodiscard]] std::optional<uint64_t> memory_bytes() const;
  // Processes of this process's group that the OOM killer has ended, the group's or the
  // host's; where the group does not count (the root of version 2), the host's. Nothing before
  // Linux 4.13.
  [[nodiscard]] std::optional<uint64_t> oom_kills() const;

 private:
  struct Group {
    std::string mount;  // both with root_
    std::string path;   // mount or below
    bool v2 = false;
  };
  [[nodiscard]] std::optional<Group> find(std::string_view controller) const;
  [[nodiscard]] std::optional<uint64_t> tightest(std::string_view controller, const char* v1_name,
                                                 const char* v2_name) const;

  std::string root_;
};

}  // namespace gxp
