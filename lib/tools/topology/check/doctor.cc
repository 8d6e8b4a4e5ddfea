#include "lib/tools/topology/check/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/text/joined.h"
#include "lib/base/text/plural.h"
#include "lib/tools/topology/check/doctor_checks.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

constexpr std::array<std::string_view, 4> kVerdicts = {"problem", "warning", "could not see", "ok"};

// In the order in which an engineer would look. Sources: NVIDIA's GPUDirect RDMA and NCCL guides
// (troubleshooting), DOCA's performance tuning, PCI Express Base 6.0 for ACS and ATS.
constexpr std::array kChecks = {
    DoctorCheck{"sysfs", "gxp and NCCL learn from /sys which GPU is near which NIC",
                "mount this host's /sys in the container, and give it the host's network namespace",
                look_at_sysfs},
    DoctorCheck{"driver", "a GPU without NVIDIA's driver cannot be used",
                "modprobe nvidia; unbind any other driver from the GPU", look_at_driver},
    DoctorCheck{
        "gpu-direct", "without it, all data between GPU and NIC goes through host memory",
        "modprobe nvidia-peermem (built against the RDMA driver that is loaded), or use the open "
        "GPU driver and Linux 5.12 or later for DMA-BUF",
        look_at_gpu_direct},
    DoctorCheck{
        "acs", "it sends all traffic between two devices of a switch up through the CPU",
        "switch ACS off in the BIOS, or with setpci on these bridges; to see it, run as root",
        look_at_acs},
    DoctorCheck{"ats", "in a virtual machine devices reach each other directly by ATS alone",
                "enable ATS in the NIC's firmware (mlxconfig ATS_ENABLED=1) and on the hypervisor; "
                "to see it, run as root",
                look_at_ats},
    DoctorCheck{"iommu", "translation sends traffic between devices through the CPU, or breaks it",
                "boot with iommu=pt, or with intel_iommu=off or amd_iommu=off", look_at_iommu},
    DoctorCheck{"pcie-width", "a link with half its lanes has half its bandwidth",
                "reseat the card or cable; look for a slot or BIOS setting of fewer lanes",
                look_at_link_width},
    DoctorCheck{
        "pcie-speed", "a link at a lower rate has a fraction of its bandwidth",
        "look again while it is busy: idle devices lower their rate; else reseat it, or look "
        "for a BIOS setting of the PCIe generation",
        look_at_link_speed},
    DoctorCheck{"relaxed-ordering", "without it, writes to memory wait for earlier ones",
                "enable relaxed ordering in the BIOS and in the NIC's firmware (mlxconfig "
                "PCI_WR_ORDERING=1); to see it, run as root",
                look_at_relaxed_ordering},
    DoctorCheck{"pcie-errors", "a link with errors retransmits, or drops the device",
                "reseat or replace the card, cable or riser; dmesg has the events",
                look_at_pcie_errors},
    DoctorCheck{
        "numa-node", "processes are placed near their GPU by its NUMA node",
        "update the BIOS, or look for a setting of PCIe NUMA locality; in a virtual machine, "
        "configure the hypervisor to report it",
        look_at_numa_nodes},
    DoctorCheck{
        "nvlink", "GPUs without their NVLinks talk over PCIe, at a tenth of the bandwidth",
        "start nvidia-fabricmanager of the driver's version; nvidia-smi nvlink -s; dmesg for "
        "Xid 74; to see it, run gxp where the driver is",
        look_at_nvlinks},
    DoctorCheck{"bar", "a NIC reaches only the part of GPU memory that BAR1 exposes",
                "enable Above 4G Decoding and Resizable BAR in the BIOS", look_at_bar},
    DoctorCheck{"verbs", "RDMA goes through libibverbs and /dev/infiniband",
                "install libibverbs1 and ibverbs-providers; give the container /dev/infiniband "
                "(docker: --device=/dev/infiniband) and locked memory (--ulimit memlock=-1)",
                look_at_verbs},
    DoctorCheck{"port-state", "NCCL ignores a port that is down",
                "check cable and switch; a port in INIT waits for a subnet manager (opensm)",
                look_at_port_state},
    DoctorCheck{"port-rate", "the slowest port holds up every collective",
                "check cable, switch port and its settings (mlxlink)", look_at_port_rate},
    DoctorCheck{
        "gid-table", "RoCE between subnets needs a GID of RoCE v2 with an IP address",
        "give the interface an IP address, and let NCCL_IB_GID_INDEX be unset or that entry",
        look_at_gid_table},
    DoctorCheck{"mtu", "RDMA sends packets of the largest power of two below the interface's MTU",
                "ip link set INTERFACE mtu 9000; raise it on the switch, too", look_at_mtu},
    DoctorCheck{"locked-memory", "RDMA and pinned buffers need memory that may not be swapped out",
                "ulimit -l unlimited (limits.conf, Slurm's PropagateResourceLimits, docker: "
                "--ulimit memlock=-1)",
                look_at_locked_memory},
    DoctorCheck{"open-files", "each connection and each shared buffer takes a file descriptor",
                "ulimit -n 65536", look_at_open_files},
    DoctorCheck{"shared-memory", "ranks of a host exchange data in /dev/shm",
                "docker: --shm-size=8g or --ipc=host; Kubernetes: an emptyDir of medium Memory at "
                "/dev/shm; remove files that ended runs left",
                look_at_shared_memory},
    DoctorCheck{"cpu-mask",
                "a process far from its GPU crosses the link between sockets on each copy",
                "let the launcher bind ranks near their GPUs, or allow all CPUs (cpuset, taskset, "
                "Slurm's --cpu-bind)",
                look_at_cpu_mask},
    DoctorCheck{"cpu-quota", "a rank, NCCL's proxy and the data loader each need a CPU",
                "raise the container's CPU limit to at least two per GPU", look_at_cpu_quota},
    DoctorCheck{"numa-balancing", "it unmaps pages to sample their use, which stalls processes",
                "sysctl kernel.numa_balancing=0", look_at_numa_balancing},
    DoctorCheck{"nccl", "NCCL moves data between GPUs",
                "install libnccl2 (or the wheel nvidia-nccl) and set LD_LIBRARY_PATH",
                look_at_nccl},
};

int number_of(const std::vector<Diagnosis>& diagnoses, DoctorVerdict verdict) {
  return int(std::ranges::count(diagnoses, verdict,
                                [](const Diagnosis& each) { return each.seen.verdict; }));
}

}  // namespace

std::string_view to_string(DoctorVerdict verdict) { return kVerdicts[size_t(verdict)]; }

std::span<const DoctorCheck> doctor_checks() { return kChecks; }

std::vector<Diagnosis> examine(const DoctorSight& sight) {
  std::vector<Diagnosis> diagnoses;
  for (const DoctorCheck& check : kChecks) diagnoses.push_back({&check, check.look(sight)});
  return diagnoses;
}

std::string doctor_text(const HostTree& host, const std::vector<Diagnosis>& diagnoses) {
  std::vector<Diagnosis> sorted = diagnoses;
  std::ranges::stable_sort(sorted, {}, [](const Diagnosis& each) { return each.seen.verdict; });
  std::string text = fmt::format(
      "{}: {}, {}, {}, {} could not see\n\n", host.name, counted(diagnoses.size(), "check"),
      counted(size_t(number_of(diagnoses, DoctorVerdict::kProblem)), "problem"),
      counted(size_t(number_of(diagnoses, DoctorVerdict::kWarning)), "warning"),
      number_of(diagnoses, DoctorVerdict::kUnseen));
  for (const Diagnosis& one : sorted) {
    const auto& [check, seen] = one;
    text += fmt::format("{:<13}  {:<16}  {}\n", to_string(seen.verdict), check->id, seen.what);
    if (seen.verdict == DoctorVerdict::kOk) continue;
    text += fmt::format("{:33}why: {}\n{:33}do:  {}\n", "", check->why, "", one.remedy());
  }
  return text;
}

Report doctor_report(const HostTree& host, const std::vector<Diagnosis>& diagnoses) {
  Report report{.schema = "gxp.topo-doctor/1"};
  report.facts.push_back({{"host"}, host.name});
  for (const auto& [key, verdict] : {std::pair{"problems", DoctorVerdict::kProblem},
                                     {"warnings", DoctorVerdict::kWarning},
                                     {"could_not_see", DoctorVerdict::kUnseen}})
    report.facts.push_back({{key}, int64_t{number_of(diagnoses, verdict)}});
  Table& table = report.add_table("checks", {{"id"}, {"verdict"}, {"seen"}, {"why"}, {"remedy"}});
  for (const Diagnosis& one : diagnoses) {
    const auto& [check, seen] = one;
    table.add_row(check->id, to_string(seen.verdict), seen.what, check->why, one.remedy());
  }
  return report;
}

bool any_problem(const std::vector<Diagnosis>& diagnoses) {
  return number_of(diagnoses, DoctorVerdict::kProblem) > 0;
}

void DoctorFindings::add(const std::string& name, const Seen& reason) {
  const auto same = std::ranges::find_if(groups_, [&](const Group& group) {
    return group.reason.verdict == reason.verdict && group.reason.what == reason.what;
  });
  if (same == groups_.end()) {
    groups_.push_back({reason, {name}});
  } else {
    same->names.push_back(name);
  }
}

Seen DoctorFindings::seen_or(std::string otherwise) const {
  if (groups_.empty()) return ok(std::move(otherwise));
  DoctorVerdict worst = DoctorVerdict::kOk;
  for (const Group& group : groups_) worst = std::min(worst, group.reason.verdict);
  std::vector<std::string> lines;
  std::string remedy;
  for (const auto& [reason, names] : groups_) {
    if (reason.verdict != worst) continue;
    lines.push_back(fmt::format("{}: {}", joined(names, ", "), reason.what));
    if (remedy.empty()) remedy = reason.remedy;
  }
  return {worst, joined(lines, "; "), remedy};
}

std::vector<DoctorDevice> gpus_of(const DoctorSight& sight) {
  const std::vector<std::string> names = names_of_parts(sight.host);
  std::vector<DoctorDevice> devices;
  for (const PartId id : sight.host.all_of(PartKind::kGpu)) {
    if (!sight.host[id].bus_id.empty())
      devices.push_back({names[id], sight.host[id].bus_id, true, id});
  }
  return devices;
}

std::vector<DoctorDevice> rdma_nics_of(const DoctorSight& sight) {
  std::vector<DoctorDevice> devices;
  for (const PartId id : sight.host.all_of(PartKind::kNic)) {
    const Part& nic = sight.host[id];
    if (nic.below.empty() || nic.bus_id.empty()) continue;
    const std::string& name = std::get<PortInfo>(sight.host[nic.below[0]].info).name;
    if (sight.root.exists("/sys/class/infiniband/" + name))
      devices.push_back({name, nic.bus_id, false, id});
  }
  return devices;
}

std::vector<DoctorDevice> direct_devices_of(const DoctorSight& sight) {
  std::vector<DoctorDevice> devices = gpus_of(sight);
  std::ranges::move(rdma_nics_of(sight), std::back_inserter(devices));
  return devices;
}

bool has_rdma(const DoctorSight& sight) {
  return !sight.root.list("/sys/class/infiniband").empty();
}

// x86 CPUs tell it by a flag; others by the hypervisor's own folder.
bool is_virtual_machine(const DoctorSight& sight) {
  const std::string cpus = sight.root.read("/proc/cpuinfo").value_or("");
  return cpus.find(" hypervisor") != std::string::npos || sight.root.exists("/sys/hypervisor/type");
}

}  // namespace gxp
