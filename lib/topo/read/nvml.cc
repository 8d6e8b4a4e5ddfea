#include "lib/topo/read/nvml.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "lib/base/error.h"
#include "lib/base/shared_library.h"
#include "lib/base/text/ascii.h"
#include "lib/topo/model/host_tree.h"

namespace gxp {
namespace {

// nvml.h of driver 450 and later.
using Result = int;
constexpr Result kSuccess = 0;
constexpr unsigned kMaxNvLinks = 64;  // drivers answer for those that a GPU has; 18 until Blackwell
constexpr int kFieldC2cCount = 170;
constexpr int kFieldC2cStatus = 171;
constexpr int kFieldC2cMbPerS = 172;

struct NvmlDevice;

struct PciInfo {
  std::array<char, 16> old_bus_id;
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  std::array<char, 32> bus_id;
};

struct MemoryInfo {
  unsigned long long total, free, used;
};

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp, latency_us;
  int type;
  Result result;
  union {
    unsigned number;
    unsigned long long wide;
  } value;
};

struct Functions {
  Result (*init)();
  Result (*shutdown)();
  const char* (*error_text)(Result);
  Result (*driver_version)(char*, unsigned);
  Result (*device_count)(unsigned*);
  Result (*device)(unsigned, NvmlDevice**);
  Result (*name)(NvmlDevice*, char*, unsigned);
  Result (*pci_info)(NvmlDevice*, PciInfo*);
  Result (*uuid)(NvmlDevice*, char*, unsigned);
  Result (*slice_count)(NvmlDevice*, unsigned* most);
  Result (*slice)(NvmlDevice*, unsigned, NvmlDevice**);
  Result (*memory_info)(NvmlDevice*, MemoryInfo*);
  Result (*compute_capability)(NvmlDevice*, int*, int*);
  Result (*link_state)(NvmlDevice*, unsigned link, int* active);
  Result (*link_remote)(NvmlDevice*, unsigned link, PciInfo*);
  Result (*p2p_status)(NvmlDevice*, NvmlDevice*, int index, int* status);
  Result (*field_values)(NvmlDevice*, int count, FieldValue*);
  Result (*remote_type)(NvmlDevice*, unsigned link, int* type);  // since driver 470, or null
};

Functions load_functions(const std::string& file) {
  const SharedLibrary library("NVML", file);
  Functions f{};
  library.find("nvmlInit_v2", f.init);
  library.find("nvmlShutdown", f.shutdown);
  library.find("nvmlErrorString", f.error_text);
  library.find("nvmlSystemGetDriverVersion", f.driver_version);
  library.find("nvmlDeviceGetCount_v2", f.device_count);
  library.find("nvmlDeviceGetHandleByIndex_v2", f.device);
  library.find("nvmlDeviceGetName", f.name);
  library.find("nvmlDeviceGetPciInfo_v3", f.pci_info);
  library.find("nvmlDeviceGetUUID", f.uuid);
  library.find("nvmlDeviceGetMaxMigDeviceCount", f.slice_count);
  library.find("nvmlDeviceGetMigDeviceHandleByIndex", f.slice);
  library.find("nvmlDeviceGetMemoryInfo", f.memory_info);
  library.find("nvmlDeviceGetCudaComputeCapability", f.compute_capability);
  library.find("nvmlDeviceGetNvLinkState", f.link_state);
  library.find("nvmlDeviceGetNvLinkRemotePciInfo_v2", f.link_remote);
  library.find("nvmlDeviceGetP2PStatus", f.p2p_status);
  library.find("nvmlDeviceGetFieldValues", f.field_values);
  library.find_optional("nvmlDeviceGetNvLinkRemoteDeviceType", f.remote_type);
  return f;
}

// NVML's domains have eight digits, Linux's at least four.
std::string linux_bus_id(const PciInfo& info) {
  std::string id(info.bus_id.data(), ::strnlen(info.bus_id.data(), info.bus_id.size()));
  while (id.size() > sizeof "0000:00:00.0" - 1 && id.starts_with('0')) id.erase(0, 1);
  return lower_case(id);
}

class Session {
 public:
  Session(const Functions& functions, const std::string& file) : f_(functions) {
    const Result result = f_.init();
    if (result != kSuccess)
      fail(ErrorKind::kUnavailable, "start NVML from {}: {}", file, f_.error_text(result));
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { f_.shutdown(); }

  NvmlFacts read() {
    NvmlFacts facts;
    std::array<char, 96> text{};
    if (f_.driver_version(text.data(), text.size()) == kSuccess) facts.driver = text.data();
    unsigned count = 0;
    check(f_.device_count(&count), "count GPUs");
    for (unsigned number = 0; number < count; ++number) {
      NvmlDevice* device = nullptr;
      // One that is lost or not permitted must not hide the others.
      if (const Result result = f_.device(number, &device); result != kSuccess) {
        facts.notes.push_back(
            fmt::format("GPU {} does not answer NVML: {}", number, f_.error_text(result)));
        continue;
      }
      facts.gpus.push_back(read_gpu(device, int(number)));
      devices_.push_back(device);
    }
    read_peers(facts);
    return facts;
  }

 private:
  void check(Result result, std::string_view act) const {
    if (result != kSuccess)
      fail(ErrorKind::kUnavailable, "{} with NVML: {}", act, f_.error_text(result));
  }

  NvmlGpu read_gpu(NvmlDevice* device, int number) const {
    NvmlGpu gpu{.number = number};
    PciInfo pci{};
    check(f_.pci_info(device, &pci), fmt::format("find the bus id of GPU {}", number));
    gpu.bus_id = linux_bus_id(pci);
    std::array<char, 96> name{};
    if (f_.name(device, name.data(), name.size()) == kSuccess) gpu.name = name.data();
    // GPUs that share the host's memory have none of their own.
    if (MemoryInfo memory{}; f_.memory_info(device, &memory) == kSuccess)
      gpu.memory_bytes = memory.total;
    int major = 0, minor = 0;
    if (f_.compute_capability(device, &major, &minor) == kSuccess)
      gpu.compute_capability = major * 10 + minor;
    gpu.uuid = uuid_of(device);
    read_slices(device, gpu);
    for (unsigned link = 0; link < kMaxNvLinks; ++link) read_link(device, link, gpu);
    read_chip_to_chip(device, gpu);
    return gpu;
  }

  [[nodiscard]] std::string uuid_of(NvmlDevice* device) const {
    std::array<char, 96> text{};
    return f_.uuid(device, text.data(), text.size()) == kSuccess ? text.data() : "";
  }

  // Some of the numbers have no slice; a GPU without MIG does not answer.
  void read_slices(NvmlDevice* device, NvmlGpu& gpu) const {
    unsigned most = 0;
    if (f_.slice_count(device, &most) != kSuccess) return;
    for (unsigned number = 0; number < most; ++number) {
      NvmlDevice* slice = nullptr;
      if (f_.slice(device, number, &slice) == kSuccess) gpu.slices.push_back(uuid_of(slice));
    }
  }

  void read_link(NvmlDevice* device, unsigned link, NvmlGpu& gpu) const {
    int active = 0;
    if (f_.link_state(device, link, &active) != kSuccess || active == 0) return;
    NvmlLink found;
    PciInfo remote{};
    if (f_.link_remote(device, link, &remote) == kSuccess) found.bus_id = linux_bus_id(remote);
    int type = -1;
    if (f_.remote_type != nullptr && f_.remote_type(device, link, &type) == kSuccess) {
      constexpr std::array kEnds = {NvLinkEnd::kGpu, NvLinkEnd::kCpu, NvLinkEnd::kSwitch};
      if (type >= 0 && type < int(kEnds.size())) found.end = kEnds[size_t(type)];
    }
    gpu.links.push_back(std::move(found));
  }

  // No value where the driver does not know the field.
  std::optional<unsigned> field(NvmlDevice* device, unsigned id, unsigned scope) const {
    FieldValue value{};
    value.field = id;
    value.scope = scope;
    const bool known = f_.field_values(device, 1, &value) == kSuccess && value.result == kSuccess;
    return known ? std::optional(value.value.number) : std::nullopt;
  }

  void read_chip_to_chip(NvmlDevice* device, NvmlGpu& gpu) const {
    const unsigned count = std::min(field(device, kFieldC2cCount, 0).value_or(0), kMaxNvLinks);
    for (unsigned link = 0; link < count; ++link) {
      const auto mb_per_s = field(device, kFieldC2cMbPerS, link);
      if (field(device, kFieldC2cStatus, link) != 1u || !mb_per_s) continue;
      gpu.chip_to_chip_gb_per_s = *mb_per_s / 1000.0;
      ++gpu.chip_to_chip_links;
    }
  }

  void read_peers(NvmlFacts& facts) const {
    constexpr std::array<const char*, 2> kActs = {"read", "write"};
    constexpr std::array<const char*, 7> kReasons = {"",
                                                     "the chipset does not allow it",
                                                     "the GPU does not allow it",
                                                     "the I/O hub does not allow it",
                                                     "the driver's settings disable it",
                                                     "it is not supported",
                                                     "the driver gives no reason"};
    for (size_t a = 0; a < devices_.size(); ++a) {
      for (size_t b = 0; b < devices_.size(); ++b) {
        for (size_t act = 0; act < kActs.size() && a != b; ++act) {
          int status = 0;
          if (f_.p2p_status(devices_[a], devices_[b], int(act), &status) != kSuccess) continue;
          if (status <= 0 || status >= int(kReasons.size())) continue;
          facts.notes.push_back(fmt::format("GPU {} may not {} GPU {}'s memory: {}",
                                            facts.gpus[a].number, kActs[act], facts.gpus[b].number,
                                            kReasons[size_t(status)]));
        }
      }
    }
  }

  const Functions& f_;
  std::vector<NvmlDevice*> devices_;
};

struct Target {
  std::string bus_id;
  NvLinkEnd end;
  friend auto operator<=>(const Target&, const Target&) = default;
};

std::string class_of(const HostTree& host, const Target& target, PartId to) {
  if (target.end == NvLinkEnd::kSwitch) return std::string(kNvSwitchClass);
  if (target.end == NvLinkEnd::kCpu) return std::string(kCpuBridgeClass);
  return to == kNoPart ? "" : host[to].identity.class_code;
}

void add_links(HostTree& host, PartId part, const NvmlGpu& gpu) {
  std::map<Target, int> counts;
  for (const NvmlLink& link : gpu.links) ++counts[{link.bus_id, link.end}];
  for (const auto& [target, count] : counts) {
    const PartId to = target.end == NvLinkEnd::kCpu ? host.find_above(part, PartKind::kNumaNode)
                                                    : host.find_bus(target.bus_id);
    host.add_cross_link({.kind = CrossLinkKind::kNvLink,
                         .from = part,
                         .to = to,
                         .target = target.bus_id,
                         .target_class = class_of(host, target, to),
                         .count = count});
  }
  if (gpu.chip_to_chip_links == 0) return;
  host.add_cross_link({.kind = CrossLinkKind::kChipToChip,
                       .from = part,
                       .to = host.find_above(part, PartKind::kNumaNode),
                       .count = gpu.chip_to_chip_links,
                       .gb_per_s = gpu.chip_to_chip_gb_per_s});
}

PartId part_of(HostTree& host, const NvmlGpu& gpu) {
  const PartId found = host.find_bus(gpu.bus_id);
  if (found != kNoPart && host[found].kind == PartKind::kGpu) return found;
  host.notes.push_back(fmt::format(
      "GPU {} ({}) is not below /sys/bus/pci; it is shown below the first NUMA node, so paths to "
      "it may be wrong",
      gpu.number, gpu.bus_id));
  return host.add({.kind = PartKind::kGpu,
                   .above = host.roots().empty() ? kNoPart : host.roots()[0],
                   .bus_id = found == kNoPart ? gpu.bus_id : "",
                   .info = GpuInfo{}});
}

}  // namespace

NvmlFacts read_nvml(const std::string& file) { return Session(load_functions(file), file).read(); }

void add_nvml(HostTree& host, const NvmlFacts& facts) {
  std::vector<PartId> parts;
  for (const NvmlGpu& gpu : facts.gpus) {
    const PartId part = part_of(host, gpu);
    auto& info = std::get<GpuInfo>(host[part].info);
    info.number = gpu.number;
    info.model_name = gpu.name;
    info.memory_bytes = gpu.memory_bytes;
    info.uuid = gpu.uuid;
    info.slices = gpu.slices;
    info.is_sliced = info.is_sliced || !gpu.slices.empty();
    if (gpu.compute_capability > 0) info.compute_capability = gpu.compute_capability;
    parts.push_back(part);
  }
  for (size_t i = 0; i < parts.size(); ++i) add_links(host, parts[i], facts.gpus[i]);
  host.notes.insert(host.notes.end(), facts.notes.begin(), facts.notes.end());
}

}  // namespace gxp
