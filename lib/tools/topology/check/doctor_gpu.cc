// Checks of GPUs and their driver.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "lib/base/bytes.h"
#include "lib/tools/topology/check/doctor_checks.h"
#include "lib/topo/model/gpu_models.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/read/sysfs_host.h"

namespace gxp {
namespace {

constexpr std::string_view kNvidia = "0x10de";

std::vector<DoctorDevice> nvidia_gpus_of(const DoctorSight& sight) {
  std::vector<DoctorDevice> gpus = gpus_of(sight);
  std::erase_if(gpus, [&](const DoctorDevice& gpu) {
    return sight.host[gpu.part].identity.vendor != kNvidia;
  });
  return gpus;
}

int active_nvlinks(const DoctorSight& sight, PartId gpu) {
  int count = 0;
  for (const CrossLink& link : sight.host.cross_links()) {
    if (link.from == gpu && link.kind == CrossLinkKind::kNvLink) count += link.count;
  }
  return count;
}

}  // namespace

Seen look_at_driver(const DoctorSight& sight) {
  DoctorFindings findings;
  for (const DoctorDevice& gpu : nvidia_gpus_of(sight)) {
    const std::string driver = sight.root.link_name(gpu.folder() + "/driver");
    if (driver == "nvidia") continue;
    findings.add(gpu.name,
                 problem(driver.empty() ? "it has no driver" : "its driver is " + driver));
  }
  return findings.seen_or(nvidia_gpus_of(sight).empty() ? "there are no NVIDIA GPUs here"
                                                        : "nvidia, at all GPUs");
}

Seen look_at_gpu_direct(const DoctorSight& sight) {
  if (nvidia_gpus_of(sight).empty() || !has_rdma(sight))
    return ok("this host does not have both NVIDIA GPUs and RDMA NICs");
  GpuDirectFacts facts = read_gpu_direct_facts(sight.root);
  if (const auto& rdma = sight.process.rdma; rdma && !rdma->ports.empty())
    facts.nic_takes_dma_buf = std::ranges::all_of(rdma->ports, &RdmaFacts::Port::takes_dma_buf);
  const auto is_consumer = [&](const DoctorDevice& gpu) {
    return is_consumer_gpu(sight.host[gpu.part]);
  };
  if (std::ranges::all_of(nvidia_gpus_of(sight), is_consumer)) {
    return {DoctorVerdict::kWarning, std::string(kNoGpuDirectOnConsumerGpus),
            "nothing; professional and data-center GPUs have it"};
  }
  const GpuDirectVerdict verdict = judge_gpu_direct(facts);
  if (verdict.is_on()) return ok(verdict.why);
  return verdict.method == GpuDirectMethod::kUnknown ? unseen(verdict.why) : problem(verdict.why);
}

Seen look_at_nvlinks(const DoctorSight& sight) {
  const std::vector<DoctorDevice> gpus = nvidia_gpus_of(sight);
  if (gpus.empty()) return ok("there are no NVIDIA GPUs here");
  std::map<std::string, int> most;  // by device id
  bool any_driver = false;
  for (const DoctorDevice& gpu : gpus) {
    int& count = most[sight.host[gpu.part].identity.device];
    count = std::max(count, active_nvlinks(sight, gpu.part));
    any_driver = any_driver || std::get<GpuInfo>(sight.host[gpu.part].info).number.has_value();
  }
  if (!any_driver) return unseen("only the driver knows the state of NVLinks");
  const bool switched = !sight.host.all_of(PartKind::kNvSwitch).empty();
  DoctorFindings findings;
  for (const DoctorDevice& gpu : gpus) {
    const int active = active_nvlinks(sight, gpu.part);
    const int best = most[sight.host[gpu.part].identity.device];
    if (active < best)
      findings.add(gpu.name,
                   problem(fmt::format("{} NVLinks are active; GPUs of the same model have {}",
                                       active, best)));
    if (best == 0 && switched)
      findings.add(gpu.name, problem("no NVLink is active, although there are NVSwitches"));
  }
  return findings.seen_or(
      fmt::format("{} active at each GPU, as at GPUs of the same model", most.begin()->second));
}

Seen look_at_bar(const DoctorSight& sight) {
  constexpr uint64_t kSmallBytes = 256u << 20;  // what a GPU without Resizable BAR shows
  if (nvidia_gpus_of(sight).empty() || !has_rdma(sight))
    return ok("this host does not have both NVIDIA GPUs and RDMA NICs");
  DoctorFindings findings;
  for (const DoctorDevice& gpu : nvidia_gpus_of(sight)) {
    // A line a BAR: first address, last address, flags. The second is BAR1.
    const std::string text = sight.root.read(gpu.folder() + "/resource").value_or("");
    const size_t line = text.find('\n');
    unsigned long long first = 0, last = 0;
    if (line == std::string::npos ||
        std::sscanf(text.c_str() + line, " %llx %llx", &first, &last) != 2) {
      findings.add(gpu.name, unseen("its BARs are not in /sys"));
    } else if (last - first < kSmallBytes) {
      findings.add(gpu.name, warning(fmt::format("BAR1 has {}",
                                                 format_bytes(last == 0 ? 0 : last - first + 1))));
    }
  }
  return findings.seen_or("BAR1 has more than 256 MiB at all GPUs");
}

}  // namespace gxp
