#include "lib/job/verbs_place.h"

#include "lib/base/error.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/model/text_parts.h"
#include "lib/topo/nccl/rank_ports.h"
#include "lib/topo/read/live_host.h"
#include "lib/topo/read/sysfs_host.h"

namespace gxp {
namespace {

VerbsPlace to_place(const HostTree& host, const RankPorts& found) {
  VerbsPlace place{.why = found.why};
  for (const PartId port : found.ports) {
    const PortInfo& info = info_of<PortInfo>(host[port]);
    place.ports.push_back(fmt::format("{}:{}", info.name, *info.port));
  }
  return place;
}

VerbsPlace place_of_gpu(const HostTree& host, const std::string& bus_id) {
  const PartId gpu = host.find_bus(bus_id);
  if (gpu == kNoPart || host[gpu].kind != PartKind::kGpu)
    return {.why = fmt::format("/sys does not show the GPU {}", bus_id),
            .gpu_direct = host.gpu_direct};
  const NcclPaths paths(host);
  const NcclRoutes routes(paths);
  const RankPorts found = ports_of_gpu(routes, gpu);
  VerbsPlace place = to_place(host, found);
  place.gpu_direct =
      found.ports.empty() ? host.gpu_direct : routes.gpu_direct_facts(gpu, found.ports[0]);
  place.needs_flush =
      found.ports.empty() || routes.needs_flush(gpu, found.ports[0]).answer != RouteAnswer::kNo;
  return place;
}

}  // namespace

VerbsPlace place_by_wiring(const SystemRoot& root, const HostTree& host,
                           const std::string& gpu_bus_id) {
  if (!gpu_bus_id.empty()) return place_of_gpu(host, gpu_bus_id);
  const std::string status = root.read("/proc/self/status").value_or("");
  const auto cpus = CpuSet::parse_list(value_behind(status, "Cpus_allowed_list:"));
  VerbsPlace place = to_place(host, ports_of_cpus(host, cpus.value_or(CpuSet())));
  place.shares = true;
  return place;
}

VerbsPlace place_on_this_host(const Device* gpu) {
  try {
    const auto root = live_root();
    if (gpu == nullptr) return place_by_wiring(*root, read_system(*root), "");
    return place_by_wiring(*root, probe_host(), gpu->bus_id());
  } catch (const Error& error) {
    return {.why = error.what()};
  }
}

}  // namespace gxp
