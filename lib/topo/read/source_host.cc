#include "lib/topo/read/source_host.h"

#include <algorithm>
#include <filesystem>

#include "lib/base/text/text_file.h"
#include "lib/topo/read/sysfs_host.h"
#include "lib/topo/read/system_archive.h"

namespace gxp {
namespace {

// hwloc-gather-topology writes "HostName: cfarm107" here.
std::string recorded_host_name(const SystemRoot& root) {
  constexpr std::string_view kKey = "HostName: ";
  const std::string text = root.read("/proc/hwloc-nofile-info").value_or("");
  const size_t key = text.find(kKey);
  if (key == text.npos) return "";
  const size_t end = std::min(text.find('\n', key), text.size());
  return text.substr(key + kKey.size(), end - key - kKey.size());
}

}  // namespace

std::unique_ptr<SystemRoot> open_recorded_root(const std::string& path) {
  std::error_code unreachable;  // which read_text_file() tells
  if (std::filesystem::is_directory(path, unreachable)) return open_recorded_directory(path);
  return parse_system_archive(read_text_file(path, kMaxArchiveFileBytes), path);
}

HostTree read_recorded_root(const SystemRoot& root, const std::string& path) {
  HostTree host = read_system(root);
  if (host.name.empty()) host.name = recorded_host_name(root);
  if (host.name.empty()) host.name = std::filesystem::path(path).filename();
  host.source = "recorded /proc and /sys, " + path;
  if (!host.all_of(PartKind::kGpu).empty()) {
    host.absent.push_back(
        "no driver in a recorded root: GPUs have no number, memory size or NVLinks");
  }
  return host;
}

}  // namespace gxp
