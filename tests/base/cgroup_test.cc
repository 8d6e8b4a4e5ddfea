#include "lib/base/cgroup.h"

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/catch.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

using Files = std::map<std::string, std::string>;  // path to content

const Files kV1 = {{"/proc/self/cgroup", "9:pids:/\n4:cpu,memory:/user/job\n0::/\n"},
                   {"/proc/self/mountinfo",
                    "30 1 0:1 / /sys/fs/cgroup/pids rw shared:1 - cgroup cgroup rw,pids\n"
                    "31 1 0:2 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,cpu,memory\n"
                    "32 1 0:3 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"},
                   {"/sys/fs/cgroup/pids/cgroup.procs", ""},
                   {"/sys/fs/cgroup/pids/pids.max", "6\n"},
                   {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
                   {"/sys/fs/cgroup/memory/user/memory.limit_in_bytes", "4096\n"},
                   {"/sys/fs/cgroup/memory/user/job/cgroup.procs", ""},
                   {"/sys/fs/cgroup/memory/user/job/memory.limit_in_bytes", "8192\n"},
                   {"/sys/fs/cgroup/memory/user/job/memory.oom_control",
                    "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"}};
const Files kV2 = {{"/proc/self/cgroup", "0::/user/job\n"},
                   {"/proc/self/mountinfo", "30 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                   {"/sys/fs/cgroup/user/pids.max", "6\n"},
                   {"/sys/fs/cgroup/user/memory.max", "max\n"},
                   {"/sys/fs/cgroup/user/job/cgroup.procs", ""},
                   {"/sys/fs/cgroup/user/job/pids.max", "max\n"},
                   {"/sys/fs/cgroup/user/job/memory.max", "4096\n"},
                   {"/sys/fs/cgroup/user/job/memory.events", "low 0\noom 5\noom_kill 3\n"}};
// A container, which sees its own group as the root.
const Files kContainer = {
    {"/proc/self/cgroup", "0::/docker/4711\n"},
    {"/proc/self/mountinfo", "30 1 0:1 /docker/4711 /sys/fs/cgroup ro - cgroup2 cgroup ro\n"},
    {"/sys/fs/cgroup/cgroup.procs", ""},
    {"/sys/fs/cgroup/pids.max", "6\n"},
    {"/sys/fs/cgroup/memory.max", "4096\n"},
    {"/sys/fs/cgroup/memory.events", "oom_kill 3\n"}};
const Files kNoGroups = {{"/proc/self/cgroup", ""}, {"/proc/vmstat", "pgfree 7\noom_kill 3\n"}};

Cgroups groups_in(const TemporaryDirectory& root, const Files& files) {
  for (const auto& [path, content] : files) {
    std::filesystem::create_directories(std::filesystem::path(root.path() + path).parent_path());
    std::ofstream(root.path() + path) << content;
  }
  return Cgroups(root.path());
}

}  // namespace

TEST_CASE("limits and kills of either version's control groups are found", "[base]") {
  for (const Files& files : {kV1, kV2, kContainer}) {
    const TemporaryDirectory root;
    const Cgroups groups = groups_in(root, files);
    CHECK(groups.most_processes() == 6);
    CHECK(groups.memory_bytes() == 4096);
    CHECK(groups.oom_kills() == 3);
  }
}

TEST_CASE("without control groups nothing is limited, and the host counts the kills", "[base]") {
  const TemporaryDirectory root;
  const Cgroups groups = groups_in(root, kNoGroups);
  CHECK_FALSE(groups.most_processes());
  CHECK_FALSE(groups.memory_bytes());
  CHECK(groups.oom_kills() == 3);
}

}  // namespace gxp
