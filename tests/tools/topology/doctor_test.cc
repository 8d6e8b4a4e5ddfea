#include "lib/tools/topology/check/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "lib/tools/topology/check/pci_config.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/read/sysfs_host.h"
#include "tests/catch.h"
#include "tests/topo/planted_host.h"

namespace gxp {
namespace {

constexpr const char* kUpstream = "0000:3a:00.0/0000:3b:00.0";

struct ConfigWords {
  uint16_t device_control = 0x10;  // relaxed ordering
  uint16_t acs_control = 0;
  uint16_t ats_control = 0x8000;
};

// PCI Express at 0x40; ACS at 0x100, ATS behind it at 0x140.
std::string make_config(const ConfigWords& words) {
  std::string bytes(4096, '\0');
  const auto put = [&](size_t at, unsigned value, size_t size) {
    for (size_t i = 0; i < size; ++i) bytes[at + i] = char(value >> 8 * i & 0xff);
  };
  put(0x34, 0x40, 1);
  put(0x40, 0x10, 2);
  put(0x48, words.device_control, 2);
  put(0x100, 0x140u << 20 | 1 << 16 | 0x0d, 4);
  put(0x106, words.acs_control, 2);
  put(0x140, 1 << 16 | 0x0f, 4);
  put(0x146, words.ats_control, 2);
  return bytes;
}

struct Patient {
  PlantedHost planted = planted_gpu_host();
  ProcessFacts process{
      .nccl_version = "2.21.5", .nccl_error = {}, .shared_memory_free_bytes = 8ull << 30};
  std::vector<CrossLink> nvlinks{};
  bool has_driver = true;

  void file(const std::string& path, const std::string& content) {
    planted.root.add_file(path, content);
  }
  void of_gpu(const std::string& name, const std::string& content) {
    file(PlantedHost::folder_of(kPlantedGpu) + "/" + name, content);
  }
  void of_nic(const std::string& name, const std::string& content) {
    file(PlantedHost::folder_of(kPlantedNic) + "/" + name, content);
  }
  void of_port(const std::string& name, const std::string& content) {
    of_nic("infiniband/mlx5_0/ports/1/" + name, content);
  }
  void second_gpu() {
    planted.plant({.path = "0000:3a:00.0/0000:3b:00.0/0000:3c:10.0/0000:3f:00.0",
                   .class_code = "0x030200",
                   .vendor = "0x10de",
                   .node = 1});
  }
  void second_nic(std::string_view rate) {
    const char* const path = "0000:3a:00.0/0000:3b:00.0/0000:3c:18.0/0000:40:00.0";
    planted.plant({.path = path, .class_code = "0x020000", .vendor = "0x15b3", .node = 1});
    planted.plant_rdma("mlx5_1", path, rate);
  }
  void link_first_gpu(int count) {
    nvlinks.push_back({.kind = CrossLinkKind::kNvLink, .count = count});
  }
};

// A host of which no check complains, seen by root.
Patient healthy() {
  Patient host;
  for (const char* const path :
       {"0000:3a:00.0", kUpstream, "0000:3a:00.0/0000:3b:00.0/0000:3c:00.0",
        "0000:3a:00.0/0000:3b:00.0/0000:3c:08.0", kPlantedGpu, kPlantedNic})
    host.file(PlantedHost::folder_of(path) + "/config", make_config({}));
  host.planted.root.add_link(PlantedHost::folder_of(kPlantedGpu) + "/driver",
                             "../../bus/pci/drivers/nvidia");
  host.of_gpu("resource", "0x0 0x0 0x0\n0x200000000000 0x201fffffffff 0x14220c\n");
  host.of_gpu("iommu_group/type", "identity");
  host.of_gpu("aer_dev_fatal", "Undefined 0\nTOTAL_ERR_FATAL 0\n");
  host.of_nic("net/ens3/mtu", "9000");
  host.of_port("gids/0", "fe80:0000:0000:0000:ba59:9fff:fec4:5d68");
  host.of_port("gid_attrs/types/0", "IB/RoCE v1");
  host.of_port("gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0007");
  host.of_port("gid_attrs/types/1", "RoCE v2");
  host.file("/sys/module/nvidia_peermem/refcnt", "0");
  host.file("/sys/kernel/mm/memory_peers/nv_mem/version", "1.0");
  host.file("/dev/null", "");
  host.file("/dev/infiniband/uverbs0", "");
  host.file("/proc/cmdline", "quiet");
  host.file("/proc/net/dev", "Inter-|  Receive\n  ens3: 0 0\n");
  host.file("/proc/self/limits",
            "Max open files            1048576  1048576  files\n"
            "Max locked memory         unlimited  unlimited  bytes\n");
  host.file("/proc/self/mountinfo", "25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw,size=16777216k\n");
  host.file("/proc/self/status", "Cpus_allowed_list:\t0-3\n");
  host.file("/proc/sys/kernel/numa_balancing", "0");
  host.file("/proc/sys/kernel/osrelease", "5.4.0-42-generic");
  host.file("/sys/fs/cgroup/cpu.max", "max 100000");
  return host;
}

std::vector<Diagnosis> examine(const Patient& patient) {
  HostTree host = read_system(patient.planted.root);
  int number = 0;
  for (const PartId gpu : host.all_of(PartKind::kGpu)) {
    if (patient.has_driver) std::get<GpuInfo>(host[gpu].info).number = number++;
  }
  for (CrossLink link : patient.nvlinks) {
    link.from = host.find_bus("0000:3d:00.0");
    host.add_cross_link(link);
  }
  return examine(DoctorSight{patient.planted.root, host, patient.process});
}

Seen seen_by(const std::vector<Diagnosis>& diagnoses, std::string_view id) {
  const auto found =
      std::ranges::find(diagnoses, id, [](const Diagnosis& each) { return each.check->id; });
  return found == diagnoses.end() ? Seen{DoctorVerdict::kOk, "no such check"} : found->seen;
}

struct Plant {
  std::string_view check;
  DoctorVerdict verdict;
  std::string words;  // of what is seen
  std::function<void(Patient&)> plant;
};

const std::string kVirtualCpu = "vendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor\n";
constexpr auto kProblem = DoctorVerdict::kProblem;
constexpr auto kWarning = DoctorVerdict::kWarning;
constexpr auto kUnseen = DoctorVerdict::kUnseen;

// Each of these, planted in a healthy host, makes its check speak so.
const std::vector<Plant>& plants() {
  static const std::vector<Plant> all = {
      {"sysfs", kWarning, "/sys shows ens3, which",
       [](Patient& p) { p.file("/proc/net/dev", "  eth0: 0 0\n"); }},
      {"sysfs", kProblem, "/sys is masked",
       [](Patient& p) {
         p.planted = PlantedHost();
         p.file("/proc/bus/pci/devices", "3d00 10de2330\n");
       }},
      {"driver", kProblem, "GPU0: its driver is vfio-pci",
       [](Patient& p) {
         p.planted.root.add_link(PlantedHost::folder_of(kPlantedGpu) + "/driver", "../vfio-pci");
       }},
      {"driver", kProblem, "GPU1: it has no driver", [](Patient& p) { p.second_gpu(); }},
      {"gpu-direct", kProblem, "nvidia_peermem is loaded, but not registered with the RDMA driver",
       [](Patient& p) {
         Patient unregistered;
         unregistered.file("/sys/module/nvidia_peermem/refcnt", "0");
         p = unregistered;
       }},
      {"gpu-direct", kProblem, "neither nvidia-peermem nor DMA-BUF",
       [](Patient& p) {
         p = Patient();
         p.file("/sys/module/nvidia/refcnt", "0");
       }},
      {"gpu-direct", kUnseen, "modules are not recorded", [](Patient& p) { p = Patient(); }},
      {"acs", kProblem, "0000:3b:00.0: ACS redirects",
       [](Patient& p) {
         p.file(PlantedHost::folder_of(kUpstream) + "/config", make_config({.acs_control = 0x1d}));
       }},
      {"acs", kUnseen, "0000:3b:00.0: their ACS needs root",
       [](Patient& p) {
         p.file(PlantedHost::folder_of(kUpstream) + "/config", make_config({}).substr(0, 64));
       }},
      {"ats", kWarning, "mlx5_0: ATS is off",
       [](Patient& p) {
         p.file("/proc/cpuinfo", kVirtualCpu);
         p.of_nic("config", make_config({.ats_control = 0}));
       }},
      {"ats", kUnseen, "needs root",
       [](Patient& p) {
         p.file("/proc/cpuinfo", kVirtualCpu);
         p.of_nic("config", make_config({}).substr(0, 64));
       }},
      {"iommu", kProblem, "GPU0: the IOMMU translates (DMA-FQ)",
       [](Patient& p) { p.of_gpu("iommu_group/type", "DMA-FQ\n"); }},
      {"iommu", kUnseen, "mlx5_0: whether its IOMMU translates",
       [](Patient& p) { p.of_nic("iommu_group/devices", ""); }},
      {"iommu", kUnseen, "iommu_groups is not recorded", [](Patient& p) { p = Patient(); }},
      {"pcie-width", kProblem, "GPU0: 8 of 16 lanes",
       [](Patient& p) { p.of_gpu("current_link_width", "8"); }},
      {"pcie-width", kProblem, "GPU0: it does not answer any more",
       [](Patient& p) { p.of_gpu("current_link_width", "63"); }},
      {"pcie-speed", kWarning, "GPU0: 2.5 of 32 GT/s",
       [](Patient& p) { p.of_gpu("current_link_speed", "2.5 GT/s PCIe"); }},
      {"pcie-speed", kUnseen, "GPU0: it does not report its link",
       [](Patient& p) { p.of_gpu("current_link_speed", "Unknown"); }},
      {"pcie-speed", kProblem, "8 of 32 GT/s",
       [](Patient& p) { p.of_nic("current_link_speed", "8.0 GT/s PCIe"); }},
      {"relaxed-ordering", kWarning, "mlx5_0: relaxed ordering is off",
       [](Patient& p) { p.of_nic("config", make_config({.device_control = 0})); }},
      {"relaxed-ordering", kUnseen, "GPU0: its control word needs root",
       [](Patient& p) { p.of_gpu("config", make_config({}).substr(0, 64)); }},
      {"pcie-errors", kProblem, "0000:3d:00.0: 3 uncorrected errors",
       [](Patient& p) { p.of_gpu("aer_dev_fatal", "Undefined 0\nTOTAL_ERR_FATAL 3\n"); }},
      {"pcie-errors", kUnseen, "its counters are not recorded", [](Patient& p) { p = Patient(); }},
      {"pcie-errors", kWarning, "0000:3d:00.0: 5000 corrected errors",
       [](Patient& p) { p.of_gpu("aer_dev_correctable", "RxErr 5000\nTOTAL_ERR_COR 5000\n"); }},
      {"numa-node", kWarning, "GPU0: Linux does not report",
       [](Patient& p) { p.of_gpu("numa_node", "-1\n"); }},
      {"nvlink", kProblem, "GPU1: 0 NVLinks are active; GPUs of the same model have 18",
       [](Patient& p) {
         p.second_gpu();
         p.link_first_gpu(18);
       }},
      {"nvlink", kProblem, "no NVLink is active, although there are NVSwitches",
       [](Patient& p) {
         p.planted.plant({.path = "0000:3a:00.0/0000:3b:00.0/0000:3c:18.0/0000:c1:00.0",
                          .class_code = "0x068000",
                          .vendor = "0x10de",
                          .node = 1});
       }},
      {"nvlink", kUnseen, "only the driver", [](Patient& p) { p.has_driver = false; }},
      {"bar", kWarning, "GPU0: BAR1 has 256 MiB",
       [](Patient& p) { p.of_gpu("resource", "0x0 0x0 0x0\n0xe0000000 0xefffffff 0x0\n"); }},
      {"verbs", kProblem, "no /dev/infiniband/uverbs*",
       [](Patient& p) {
         p = Patient();
         p.file("/dev/null", "");
       }},
      {"verbs", kProblem, "this process cannot register 16 MiB",
       [](Patient& p) { p.process.rdma = RdmaFacts{.obstacle = "cannot register 16 MiB"}; }},
      {"verbs", kUnseen, "/dev is not recorded", [](Patient& p) { p = Patient(); }},
      {"port-state", kProblem, "mlx5_0: it is down",
       [](Patient& p) { p.of_port("state", "1: DOWN"); }},
      {"port-state", kWarning, "mlx5_0: it is init",
       [](Patient& p) {
         p.of_port("state", "2: INIT");
         p.second_nic("400 Gb/sec (4X NDR)");
       }},
      {"port-rate", kProblem, "mlx5_1: 100 Gbit/s, others of its model 400",
       [](Patient& p) { p.second_nic("100 Gb/sec (1X NDR)"); }},
      {"gid-table", kProblem, "mlx5_0: it has no RoCE v2 GID",
       [](Patient& p) { p.of_port("gid_attrs/types/1", "IB/RoCE v1"); }},
      {"gid-table", kWarning, "mlx5_0: its RoCE v2 GIDs are all link-local",
       [](Patient& p) { p.of_port("gids/1", "fe80:0000:0000:0000:0000:0000:0000:0001"); }},
      {"gid-table", kUnseen, "mlx5_0: its GIDs are not in /sys", [](Patient& p) { p = Patient(); }},
      {"mtu", kWarning, "ens3: the MTU is 1500",
       [](Patient& p) { p.of_nic("net/ens3/mtu", "1500"); }},
      {"mtu", kUnseen, "ens3: its MTU is not recorded", [](Patient& p) { p = Patient(); }},
      {"mtu", kWarning, "mlx5_0: its packets carry 1024 bytes",
       [](Patient& p) {
         p.process.rdma = RdmaFacts{
             .ports = {{.name = "mlx5_0 port 1", .packet_bytes = 1024, .address = "10.0.0.7"}}};
       }},
      {"locked-memory", kProblem, "64 KiB",
       [](Patient& p) { p.file("/proc/self/limits", "Max locked memory  65536  65536  bytes\n"); }},
      {"locked-memory", kUnseen, "not recorded", [](Patient& p) { p = Patient(); }},
      {"open-files", kWarning, "1024 at most",
       [](Patient& p) { p.file("/proc/self/limits", "Max open files  1024  4096  files\n"); }},
      {"shared-memory", kProblem, "it has 64 MiB",
       [](Patient& p) {
         p.file("/proc/self/mountinfo", "9 8 0:2 / /dev/shm rw - tmpfs shm rw,size=65536k\n");
       }},
      {"shared-memory", kProblem, "nothing is mounted",
       [](Patient& p) { p.file("/proc/self/mountinfo", "27 1 254:0 / / rw - ext4 a rw\n"); }},
      {"shared-memory", kProblem, "1 MiB of 16 GiB are free",
       [](Patient& p) { p.process.shared_memory_free_bytes = 1 << 20; }},
      {"shared-memory", kWarning, "it has 512 MiB",
       [](Patient& p) {
         p.file("/proc/self/mountinfo", "9 8 0:2 / /dev/shm rw - tmpfs shm rw,size=524288k\n");
       }},
      {"cpu-mask", kWarning, "GPU0: none of its NUMA node's CPUs (2-3) is allowed, only 0-1",
       [](Patient& p) { p.file("/proc/self/status", "Cpus_allowed_list:\t0-1\n"); }},
      {"cpu-quota", kWarning, "1.5 CPUs for 1 GPU",
       [](Patient& p) { p.file("/sys/fs/cgroup/cpu.max", "150000 100000"); }},
      {"cpu-quota", kUnseen, "not recorded", [](Patient& p) { p = Patient(); }},
      {"numa-balancing", kUnseen, "not recorded",
       [](Patient& p) {
         p = Patient();
         p.file("/proc/sys/kernel/osrelease", "6.8.0");
       }},
      {"numa-balancing", kWarning, "on",
       [](Patient& p) { p.file("/proc/sys/kernel/numa_balancing", "1"); }},
      {"nccl", kWarning, "load NCCL: no",
       [](Patient& p) { p.process = {.nccl_version = {}, .nccl_error = "load NCCL: no"}; }},
      {"nccl", kUnseen, "not recorded", [](Patient& p) { p.process = {}; }},
  };
  return all;
}

}  // namespace

TEST_CASE("no check complains of a healthy host", "[inspect][doctor]") {
  for (const auto& [check, seen] : examine(healthy())) {
    CAPTURE(check->id, seen.what);
    CHECK(seen.verdict == DoctorVerdict::kOk);
  }
}

TEST_CASE("each planted defect is seen by its check", "[inspect][doctor]") {
  for (const Plant& each : plants()) {
    Patient patient = healthy();
    each.plant(patient);
    const Seen seen = seen_by(examine(patient), each.check);
    CAPTURE(each.check, each.words, seen.what);
    CHECK(seen.verdict == each.verdict);
    CHECK(seen.what.find(each.words) != std::string::npos);
  }
}

TEST_CASE("each check has a defect that makes it speak, and says why and what to do",
          "[inspect][doctor]") {
  std::set<std::string_view> spoken;
  for (const Plant& each : plants()) spoken.insert(each.check);
  for (const DoctorCheck& check : doctor_checks()) {
    CAPTURE(check.id);
    CHECK(spoken.contains(check.id));
    CHECK_FALSE(check.why.empty());
    CHECK_FALSE(check.remedy.empty());
  }
  CHECK(spoken.size() == doctor_checks().size());
}

TEST_CASE("DMA-BUF is enough for GPUDirect RDMA", "[inspect][doctor]") {
  Patient patient;
  patient.file("/sys/module/nvidia/refcnt", "0");
  patient.file("/proc/driver/nvidia/version",
               "NVRM version: NVIDIA UNIX Open Kernel Module 550.54");
  patient.file("/proc/sys/kernel/osrelease", "6.8.0-31-generic");
  CHECK(seen_by(examine(patient), "gpu-direct").verdict == DoctorVerdict::kOk);
  patient.process.rdma = RdmaFacts{.ports = {{.name = "mlx5_0 port 1", .takes_dma_buf = false}}};
  CHECK(contains(seen_by(examine(patient), "gpu-direct").what, "the NIC's driver takes none"));
  patient.process.rdma->ports[0].takes_dma_buf = true;
  CHECK(seen_by(examine(patient), "gpu-direct").verdict == DoctorVerdict::kOk);
  patient.file("/proc/sys/kernel/osrelease", "5.4.0-42-generic");
  CHECK(seen_by(examine(patient), "gpu-direct").verdict == DoctorVerdict::kProblem);
}

TEST_CASE("doctor advises what helps: nothing for a GeForce, the host for a recording",
          "[inspect][doctor]") {
  Patient patient;
  patient.of_gpu("device", "0x2684");
  const std::vector<Diagnosis> found = examine(patient);
  CHECK(seen_by(found, "gpu-direct").verdict == DoctorVerdict::kWarning);
  for (const Diagnosis& one : found) {
    if (one.check->id == "gpu-direct") CHECK(contains(one.remedy(), "nothing"));
    if (contains(one.seen.what, "not recorded"))
      CHECK(one.remedy() == "run gxp topo doctor on the host");
  }
}

TEST_CASE("a limit of locked memory that does not bind the process is no problem",
          "[inspect][doctor]") {
  Patient patient = healthy();
  patient.file("/proc/self/limits", "Max locked memory  65536  65536  bytes\n");
  patient.process.rdma = RdmaFacts{.ports = {{.name = "mlx5_0 port 1", .packet_bytes = 4096}}};
  CHECK(seen_by(examine(patient), "locked-memory").verdict == DoctorVerdict::kOk);
}

TEST_CASE("a recorded host without GPUs has no problems", "[inspect][doctor]") {
  Patient patient;
  patient.planted = PlantedHost(1);
  patient.process = {};
  CHECK_FALSE(any_problem(examine(patient)));
}

TEST_CASE("the worst is written first, with why and what to do", "[inspect][doctor]") {
  Patient patient = healthy();
  patient.of_gpu("current_link_width", "8");
  HostTree host;
  host.name = "node7";
  const std::string text = doctor_text(host, examine(patient));
  CHECK(
      text.starts_with("node7: 25 checks, 1 problem, 0 warnings, 0 could not see\n\n"
                       "problem        pcie-width        GPU0: 8 of 16 lanes\n" +
                       std::string(33, ' ') + "why: a link with half its lanes"));
  CHECK(any_problem(examine(patient)));
  const Report report = doctor_report(host, examine(patient));
  CHECK(report.tables[0].rows.size() == doctor_checks().size());
}

TEST_CASE("a list of capabilities that goes round ends", "[inspect][doctor]") {
  std::string bytes = make_config({});
  bytes[0x41] = 0x40;                    // its own next
  bytes[0x102] = bytes[0x103] = '\x10';  // 0x100 again
  RecordedRoot root;
  root.add_file("/x/config", bytes);
  const PciConfig config(root, "/x");
  CHECK_FALSE(config.find(PciConfig::Extended::kAts));
  CHECK(config.find(PciConfig::Capability::kPciExpress) == 0x40);
}

}  // namespace gxp
