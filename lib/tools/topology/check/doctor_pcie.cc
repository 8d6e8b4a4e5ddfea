// Checks of the PCIe links of GPUs and NICs.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/tools/topology/check/doctor_checks.h"
#include "lib/tools/topology/check/pci_config.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/model/text_parts.h"
#include "lib/topo/read/pci_tree.h"

namespace gxp {
namespace {

// The bridges between each device and its root.
std::set<std::string> bridges_above_all(const DoctorSight& sight) {
  std::set<std::string> all;
  for (const DoctorDevice& device : direct_devices_of(sight)) {
    const auto ids = bus_ids_in(sight.root.resolve(device.folder()).value_or(""));
    if (!ids.empty()) all.insert(ids.begin(), ids.end() - 1);
  }
  return all;
}

constexpr const char* kNoGpus = "there are no GPUs here";

// Reports the shortfall of the links of each device and of the bridges above it in the tree.
template <class Shortfall>
Seen look_at_links(const DoctorSight& sight, const std::string& fine, Shortfall shortfall) {
  const std::vector<std::string> names = names_of_parts(sight.host);
  DoctorFindings findings;
  bool known = false;
  std::set<PartId> asked;
  for (const DoctorDevice& device : direct_devices_of(sight)) {
    for (PartId id = device.part; id != kNoPart && asked.insert(id).second;
         id = sight.host[id].above) {
      const PcieLink& link = sight.host[id].link;
      const bool is_told = link.now.lanes > 0 && link.most.lanes > 0 && link.now.gt_per_s > 0;
      if (!is_told && id == device.part)
        findings.add(device.name, unseen("it does not report its link"));
      known = known || is_told;
      if (const std::string reason = shortfall(link); !reason.empty()) {
        const bool idle = sight.host[id].kind != PartKind::kNic;
        findings.add(names[id], idle ? warning(reason) : problem(reason));
      }
    }
  }
  if (direct_devices_of(sight).empty()) return ok("there are no GPUs or RDMA NICs here");
  if (!known) return unseen("the devices do not report the maximum of their links");
  return findings.seen_or(fine);
}

// A register of a device that is gone reads as ones, which makes 63 lanes.
Seen look_for_lost(const DoctorSight& sight) {
  DoctorFindings findings;
  for (const DoctorDevice& device : direct_devices_of(sight)) {
    if (sight.root.read_number(device.folder() + "/current_link_width") == 63)
      findings.add(device.name, {DoctorVerdict::kProblem, "it does not answer any more",
                                 "look for Xid 79 (fallen off the bus) in dmesg; restart the host, "
                                 "or reseat the card"});
  }
  return findings.seen_or("");
}

}  // namespace

Seen look_at_acs(const DoctorSight& sight) {
  constexpr uint16_t kRedirects = 0x04 | 0x08;  // requests, completions
  if (gpus_of(sight).empty()) return ok(kNoGpus);
  if (is_virtual_machine(sight))
    return ok("a virtual machine: the hypervisor's ACS keeps it to its devices");
  DoctorFindings findings;
  for (const std::string& id : bridges_above_all(sight)) {
    const PciConfig config(sight.root, "/sys/bus/pci/devices/" + id);
    const auto acs = config.find(PciConfig::Extended::kAcs);
    if (!config.extended_visible()) {
      findings.add(id, unseen("their ACS needs root to be read"));
    } else if (acs && (config.word(*acs + 6).value_or(0) & kRedirects) != 0) {
      findings.add(id, problem("ACS redirects traffic between the devices below"));
    }
  }
  return findings.seen_or("no bridge above GPUs and NICs redirects");
}

Seen look_at_ats(const DoctorSight& sight) {
  constexpr uint16_t kEnabled = 0x8000;
  if (!is_virtual_machine(sight)) return ok("no virtual machine: it is not needed");
  if (gpus_of(sight).empty()) return ok(kNoGpus);
  DoctorFindings findings;
  for (const DoctorDevice& nic : rdma_nics_of(sight)) {
    const PciConfig config(sight.root, nic.folder());
    const auto ats = config.find(PciConfig::Extended::kAts);
    if (!config.extended_visible()) {
      findings.add(nic.name, unseen("its ATS needs root to be read"));
    } else if (!ats || (config.word(*ats + 6).value_or(0) & kEnabled) == 0) {
      findings.add(nic.name, warning("ATS is off"));
    }
  }
  return findings.seen_or("ATS is on at all RDMA NICs, if any");
}

Seen look_at_iommu(const DoctorSight& sight) {
  if (direct_devices_of(sight).empty()) return ok("there are no GPUs or RDMA NICs here");
  const std::string boot = sight.root.read("/proc/cmdline").value_or("");
  const bool passes = boot.find("iommu=pt") != std::string::npos ||
                      boot.find("iommu.passthrough=1") != std::string::npos;
  const auto has_group = [&](const DoctorDevice& device) {
    return sight.root.exists(device.folder() + "/iommu_group");
  };
  const bool is_recorded = sight.root.live() || sight.root.exists("/sys/kernel/iommu_groups") ||
                           std::ranges::any_of(direct_devices_of(sight), has_group);
  if (!is_recorded) return not_recorded("/sys/kernel/iommu_groups is");
  DoctorFindings findings;
  for (const DoctorDevice& device : direct_devices_of(sight)) {
    if (!has_group(device)) continue;  // it has no IOMMU above it
    const auto type = sight.root.read(device.folder() + "/iommu_group/type");
    if (!type && !passes)
      findings.add(device.name, unseen("whether its IOMMU translates is not in /sys"));
    if (type && *type != "identity")
      findings.add(device.name,
                   {has_rdma(sight) ? DoctorVerdict::kProblem : DoctorVerdict::kWarning,
                    fmt::format("the IOMMU translates ({})", *type)});
  }
  return findings.seen_or("off, or passing through");
}

Seen look_at_link_width(const DoctorSight& sight) {
  const auto narrow = [](const PcieLink& link) -> std::string {
    if (link.now.lanes == 0 || link.now.lanes >= link.most.lanes) return "";
    return fmt::format("{} of {} lanes", link.now.lanes, link.most.lanes);
  };
  if (const Seen lost = look_for_lost(sight); lost.verdict != DoctorVerdict::kOk) return lost;
  Seen seen = look_at_links(sight, "all links have all their lanes", narrow);
  // Unlike the rate, lanes are not given up by idle devices.
  if (seen.verdict == DoctorVerdict::kWarning) seen.verdict = DoctorVerdict::kProblem;
  return seen;
}

Seen look_at_link_speed(const DoctorSight& sight) {
  return look_at_links(sight, "all links have their full rate", [](const PcieLink& link) {
    if (link.now.gt_per_s == 0 || link.now.gt_per_s >= link.most.gt_per_s) return std::string();
    return fmt::format("{} of {} GT/s", link.now.gt_per_s, link.most.gt_per_s);
  });
}

Seen look_at_relaxed_ordering(const DoctorSight& sight) {
  constexpr uint16_t kRelaxedOrdering = 0x10;  // of the device's control word
  DoctorFindings findings;
  for (const DoctorDevice& device : direct_devices_of(sight)) {
    const PciConfig config(sight.root, device.folder());
    const auto express = config.find(PciConfig::Capability::kPciExpress);
    if (!config.visible()) {
      findings.add(device.name, unseen("its control word needs root to be read"));
    } else if (express && (config.word(*express + 8).value_or(0) & kRelaxedOrdering) == 0) {
      findings.add(device.name, warning("relaxed ordering is off"));
    }
  }
  return findings.seen_or("on at all GPUs and RDMA NICs, if any");
}

Seen look_at_pcie_errors(const DoctorSight& sight) {
  bool has_counters = false;
  const auto total = [&](const std::string& path, std::string_view key) {
    const auto counters = sight.root.read(path);
    has_counters = has_counters || counters.has_value();
    return leading_number<long>(value_behind(counters.value_or(""), key));
  };
  constexpr long kMany = 1000;  // some are of the first training of a link
  DoctorFindings findings;
  std::set<std::string> ids = bridges_above_all(sight);
  for (const DoctorDevice& device : direct_devices_of(sight)) ids.insert(device.bus_id);
  for (const std::string& id : ids) {
    const std::string folder = "/sys/bus/pci/devices/" + id;
    const long fatal = total(folder + "/aer_dev_fatal", "TOTAL_ERR_FATAL ") +
                       total(folder + "/aer_dev_nonfatal", "TOTAL_ERR_NONFATAL ");
    const long corrected = total(folder + "/aer_dev_correctable", "TOTAL_ERR_COR ");
    if (fatal > 0) findings.add(id, problem(fmt::format("{} uncorrected errors", fatal)));
    if (corrected > kMany) findings.add(id, warning(fmt::format("{} corrected errors", corrected)));
  }
  if (!ids.empty() && !has_counters)
    return sight.root.live() ? unseen("Linux counts none here") : not_recorded("its counters are");
  return findings.seen_or("none counted since the host started");
}

Seen look_at_numa_nodes(const DoctorSight& sight) {
  if (sight.host.all_of(PartKind::kNumaNode).size() < 2) return ok("there is one NUMA node");
  DoctorFindings findings;
  for (const DoctorDevice& device : direct_devices_of(sight)) {
    if (sight.root.read_number(device.folder() + "/numa_node").value_or(-1) < 0)
      findings.add(device.name, warning("Linux does not report its NUMA node"));
  }
  return findings.seen_or("known for all GPUs and RDMA NICs, if any");
}

}  // namespace gxp
