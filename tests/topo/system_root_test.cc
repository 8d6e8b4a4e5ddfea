#include "lib/topo/read/system_root.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/topo/complaint.h"
#include "tests/topo/recorded_root.h"

namespace gxp {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("symbolic links are followed inside a root and never out of it", "[topo]") {
  RecordedRoot root;
  root.add_file("/sys/devices/a/numa_node", std::string(" 1\n\n\0", 5));
  root.add_link("/sys/bus/b", "../devices/a");
  root.add_link("/sys/absolute", "/sys/bus/b");
  root.add_link("/sys/out", "../../../../sys/devices");
  root.add_link("/sys/loop", "loop");
  root.add_link("/sys/lost", "nowhere");
  CHECK(root.resolve("/sys/bus/b/numa_node") == "/sys/devices/a/numa_node");
  CHECK(root.read_number("/sys/absolute/numa_node") == 1);
  CHECK(root.resolve("/sys/out/a") == "/sys/devices/a");
  CHECK(root.read("/sys/loop") == std::nullopt);
  CHECK_FALSE(root.exists("/sys/lost"));
  CHECK_FALSE(root.exists("/sys/devices/a/numa_node/x"));
  CHECK(root.link_name("/sys/bus/b") == "a");
  CHECK(root.link_name("/sys/devices") == "");
}

TEST_CASE("names with numbers in them are listed by number", "[topo]") {
  RecordedRoot root;
  for (const char* const name : {"cpu10", "cpu2", "online", "cpu0"})
    root.add_file(std::string("/c/") + name, "");
  CHECK(root.list("/c") == Names{"cpu0", "cpu2", "cpu10", "online"});
  CHECK(root.list("/c/online").empty());
  CHECK(root.list("/") == Names{"c"});
}

TEST_CASE("links that lead to a large directory again and again end in an error", "[topo]") {
  RecordedRoot root;
  const std::string long_name(200, 'n');
  for (int i = 0; i < 5000; ++i) root.add_directory("/sys/large/" + std::to_string(i) + long_name);
  root.add_link("/sys/link", "large");
  CHECK(root.list("/sys/link").size() == 5000);
  CHECK(
      complaint(ErrorKind::kCorrupt, [&] {
        for (int i = 0; i < 4000; ++i) (void)root.list("/sys/link");
      }).starts_with("read recorded /proc and /sys: following its links takes more than 512 MiB"));
}

TEST_CASE("links of a recorded directory lead into it, not into this host", "[topo]") {
  namespace fs = std::filesystem;
  const fs::path directory = fs::temp_directory_path() / fmt::format("gxp-root-{}", ::getpid());
  fs::create_directories(directory / "host7/sys/a");
  std::ofstream(directory / "host7/sys/a/name") << "inside\n";
  fs::create_symlink("/sys/a", directory / "host7/sys/absolute");
  fs::create_symlink("/proc/self", directory / "host7/sys/outside");
  const auto root = open_recorded_directory(directory);
  CHECK_FALSE(root->live());
  CHECK(root->read("/sys/absolute/name") == "inside");
  CHECK(root->list("/sys") == Names{"a", "absolute", "outside"});
  CHECK_FALSE(root->exists("/sys/outside/comm"));
  const auto open_wrong = [&] { open_recorded_directory(directory / "host7/sys"); };
  CHECK(complaint(ErrorKind::kIo, open_wrong)
            .find("it has no sys directory at the top or one level below") != std::string::npos);
  const auto open_file = [&] { open_recorded_directory(directory / "host7/sys/a/name"); };
  CHECK(complaint(ErrorKind::kIo, open_file)
            .ends_with("unpack what hwloc-gather-topology wrote, and give the folder"));
  fs::remove_all(directory);
}

TEST_CASE("a copy of /sys has links to its devices, or files that say where these lead", "[topo]") {
  namespace fs = std::filesystem;
  const fs::path directory = fs::temp_directory_path() / fmt::format("gxp-copy-{}", ::getpid());
  const fs::path devices = directory / "sys/bus/pci/devices";
  fs::create_directories(devices);
  fs::create_directories(directory / "sys/devices/pci0000:3a/0000:3a:00.0");
  std::ofstream(devices / "0000:3a:00.0") << "../../../devices/pci0000:3a/0000:3a:00.0";
  CHECK(open_recorded_directory(directory)->resolve("/sys/bus/pci/devices/0000:3a:00.0") ==
        "/sys/devices/pci0000:3a/0000:3a:00.0");
  const auto open_copy = [&] { open_recorded_directory(directory); };
  const std::string lost = "0000:3b:00.0 is not a link to a device below /sys/devices";
  fs::create_directories(devices / "0000:3b:00.0");  // as cp -rL makes it
  CHECK(complaint(ErrorKind::kIo, open_copy).find(lost) != std::string::npos);
  fs::remove(devices / "0000:3b:00.0");
  fs::create_symlink("../../../devices/0000:3b:00.0", devices / "0000:3b:00.0");  // not copied
  CHECK(complaint(ErrorKind::kIo, open_copy).find(lost) != std::string::npos);
  fs::remove_all(directory);
}

TEST_CASE("this host's files are read as they are", "[topo]") {
  const auto root = live_root();
  CHECK(root->live());
  CHECK(root->read("/proc/self/comm").has_value());
  CHECK_FALSE(root->read("/proc/self"));
  CHECK(root->resolve("/proc/self") != "/proc/self");
}

}  // namespace
}  // namespace gxp
