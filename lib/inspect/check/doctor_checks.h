// The checks of `gxp topo doctor`, and what they share. doctor.cc has their table.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/inspect/check/doctor.h"

namespace gxp {

// A GPU or RDMA NIC.
struct DoctorDevice {
  std::string name;    // "GPU0", "mlx5_0"
  std::string bus_id;  // not ""
  bool is_gpu = false;
  PartId part = kNoPart;
  [[nodiscard]] std::string folder() const { return "/sys/bus/pci/devices/" + bus_id; }
};

std::vector<DoctorDevice> gpus_of(const DoctorSight& sight);
std::vector<DoctorDevice> rdma_nics_of(const DoctorSight& sight);
// Both: those between which GPUDirect moves data.
std::vector<DoctorDevice> direct_devices_of(const DoctorSight& sight);
bool has_rdma(const DoctorSight& sight);
bool is_virtual_machine(const DoctorSight& sight);

// What was found on several devices: names under each reason, in the order of finding.
class DoctorFindings {
 public:
  void add(DoctorVerdict verdict, const std::string& reason, const std::string& name);
  [[nodiscard]] bool empty() const { return groups_.empty(); }
  // The worst verdict, and of that all reasons with their names: "GPU0, GPU1: width 8 of 16".
  [[nodiscard]] Seen seen_or(std::string ok) const;

 private:
  struct Group {
    DoctorVerdict verdict;
    std::string reason;
    std::vector<std::string> names;
  };
  std::vector<Group> groups_;
};

// doctor_system.cc
Seen look_at_sysfs(const DoctorSight& sight);
Seen look_at_shared_memory(const DoctorSight& sight);
Seen look_at_locked_memory(const DoctorSight& sight);
Seen look_at_open_files(const DoctorSight& sight);
Seen look_at_cpu_mask(const DoctorSight& sight);
Seen look_at_cpu_quota(const DoctorSight& sight);
Seen look_at_numa_balancing(const DoctorSight& sight);
Seen look_at_nccl(const DoctorSight& sight);
// doctor_gpu.cc
Seen look_at_driver(const DoctorSight& sight);
Seen look_at_gpu_direct(const DoctorSight& sight);
Seen look_at_nvlinks(const DoctorSight& sight);
Seen look_at_bar(const DoctorSight& sight);
// doctor_pcie.cc
Seen look_at_acs(const DoctorSight& sight);
Seen look_at_ats(const DoctorSight& sight);
Seen look_at_iommu(const DoctorSight& sight);
Seen look_at_link_width(const DoctorSight& sight);
Seen look_at_link_speed(const DoctorSight& sight);
Seen look_at_relaxed_ordering(const DoctorSight& sight);
Seen look_at_pcie_errors(const DoctorSight& sight);
Seen look_at_numa_nodes(const DoctorSight& sight);
// doctor_network.cc
Seen look_at_port_state(const DoctorSight& sight);
Seen look_at_port_rate(const DoctorSight& sight);
Seen look_at_gid_table(const DoctorSight& sight);
Seen look_at_mtu(const DoctorSight& sight);
Seen look_at_verbs(const DoctorSight& sight);

}  // namespace gxp
