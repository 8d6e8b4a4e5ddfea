// The checks of `gxp topo doctor`, and their common functions. doctor.cc has the table.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/tools/topology/check/doctor.h"
#include "lib/topo/model/part_id.h"

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
// GPUs and RDMA NICs, between which GPUDirect moves data.
std::vector<DoctorDevice> direct_devices_of(const DoctorSight& sight);
bool has_rdma(const DoctorSight& sight);
bool is_virtual_machine(const DoctorSight& sight);

inline Seen ok(std::string what) { return {DoctorVerdict::kOk, std::move(what)}; }
inline Seen warning(std::string what) { return {DoctorVerdict::kWarning, std::move(what)}; }
inline Seen problem(std::string what) { return {DoctorVerdict::kProblem, std::move(what)}; }
inline Seen unseen(std::string what) { return {DoctorVerdict::kUnseen, std::move(what)}; }
// Facts that a recording of a host lacks.
inline Seen not_recorded(const std::string& what) {
  return {DoctorVerdict::kUnseen, what + " not recorded; run it on the host",
          "run gxp topo doctor on the host"};
}

// Findings on several devices: the devices' names by reason, in the order of finding.
class DoctorFindings {
 public:
  void add(const std::string& name, const Seen& reason);
  // The worst verdict, and all its reasons with their names: "GPU0, GPU1: width 8 of 16". The first
  // remedy of theirs that is not the check's own.
  [[nodiscard]] Seen seen_or(std::string otherwise) const;

 private:
  struct Group {
    Seen reason;
    std::vector<std::string> names;
  };
  std::vector<Group> groups_;
};

// doctor_system.cc
using LookAtHost = Seen(const DoctorSight& sight);
LookAtHost look_at_sysfs, look_at_shared_memory, look_at_locked_memory, look_at_open_files;
LookAtHost look_at_cpu_mask, look_at_cpu_quota, look_at_numa_balancing, look_at_nccl;
// doctor_gpu.cc
LookAtHost look_at_driver, look_at_gpu_direct, look_at_nvlinks, look_at_bar;
// doctor_pcie.cc
LookAtHost look_at_acs, look_at_ats, look_at_iommu, look_at_link_width, look_at_link_speed;
LookAtHost look_at_relaxed_ordering, look_at_pcie_errors, look_at_numa_nodes;
// doctor_network.cc
LookAtHost look_at_port_state, look_at_port_rate, look_at_gid_table, look_at_mtu, look_at_verbs;

}  // namespace gxp
