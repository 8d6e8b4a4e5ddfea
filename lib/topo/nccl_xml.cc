#include "lib/topo/nccl_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <utility>

#include "lib/base/error.h"
#include "lib/topo/text_file.h"

namespace gxp {
namespace {

constexpr double kLocalGbPerS = 5000;  // a NIC without a PCIe device, as in NCCL
constexpr double kUnknownPcieGtPerS = 8;
constexpr int kUnknownPcieWidth = 16;

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  return text;
}

double nvlink_gb_per_s(double compute_capability) {
  if (compute_capability >= 100) return 40.1;
  if (compute_capability >= 90) return 20.6;
  if (compute_capability == 86) return 12;
  return compute_capability >= 70 ? 20 : 18;
}

double inter_numa_gb_per_s(const pugi::xml_node& cpu) {
  const std::string_view arch = cpu.attribute("arch").value();
  const std::string_view vendor = cpu.attribute("vendor").value();
  const int model = cpu.attribute("modelid").as_int();
  if (arch == "ppc64") return 32;
  if (arch == "arm64") return 6;
  if (vendor == "AuthenticAMD") return 16;
  if (vendor != "GenuineIntel") return 6;  // Zhaoxin and what is not named
  if (model >= 0xCF) return 40;            // Emerald Rapids
  if (model >= 0x8F) return 22;            // Sapphire Rapids
  return model >= 0x55 ? 10 : 6;           // Skylake; Broadwell
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& name, const LinkLatencies& latencies)
      : text_(text), name_(name), latencies_(latencies) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') line_ends_.push_back(i);
    }
  }

  HostTopology read() {
    const auto result = document_.load_buffer(text_.data(), text_.size());
    if (!result) fail_at(result.offset, result.description());
    const pugi::xml_node system = document_.child("system");
    if (!system) fail_at(0, "there is no <system>; is it a topology that NCCL wrote?");
    const std::string_view version = system.attribute("version").value();
    if (version != "1") {
      fail_at(system.offset_debug(),
              fmt::format("<system version=\"{}\">: only 1 is known", version));
    }
    for (const pugi::xml_node cpu : system.children("cpu")) read_cpu(cpu);
    number_gpus();
    for (const Gpu& gpu : gpus_) read_gpu_links(gpu);
    return std::move(host_);
  }

 private:
  struct Gpu {
    VertexId vertex;
    VertexId numa_node;
    pugi::xml_node pci;
    std::optional<double> dev;
  };

  [[nodiscard]] size_t line_of(std::ptrdiff_t offset) const {
    const auto lines_before = std::ranges::lower_bound(line_ends_, size_t(std::max(offset, {})));
    return 1 + size_t(lines_before - line_ends_.begin());
  }

  [[noreturn]] void fail_at(std::ptrdiff_t offset, std::string_view why) const {
    fail(ErrorKind::kCorrupt, "read topology {}:{}: {}", name_, line_of(offset), why);
  }

  [[noreturn]] void fail_at(const pugi::xml_node& node, std::string_view why) const {
    fail_at(node.offset_debug(), why);
  }

  void note(const pugi::xml_node& node, std::string_view what) {
    host_.notes.push_back(fmt::format("{}:{}: {}", name_, line_of(node.offset_debug()), what));
  }

  // Nothing if there is no such attribute.
  [[nodiscard]] std::optional<double> number(const pugi::xml_node& node, const char* key,
                                             double low, double high) const {
    const std::string_view text = node.attribute(key).value();
    if (text.empty()) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (!whole || !(value >= low && value <= high)) {
      fail_at(node, fmt::format("<{} {}=\"{}\">: must be a number from {} to {}", node.name(), key,
                                text.substr(0, 40), low, high));
    }
    return value;
  }

  void join(VertexId a, VertexId b, LinkKind kind, double gb_per_s, double latency_s) {
    host_.graph.add_cable(
        {.from = a, .to = b, .kind = kind, .gb_per_s = gb_per_s, .latency_s = latency_s});
  }

  void read_cpu(const pugi::xml_node& cpu);
  void read_device(const pugi::xml_node& pci, VertexId above, VertexId numa_node, int depth);
  VertexKind kind_of(const pugi::xml_node& pci);
  double pcie_gb_per_s(const pugi::xml_node& pci);
  void read_nic(const pugi::xml_node& nic, VertexId vertex);
  void number_gpus();
  void read_gpu_links(const Gpu& gpu);
  void read_nvlink(const Gpu& gpu, const pugi::xml_node& nvlink, double gb_per_s);
  void join_nvswitch(VertexId gpu, double gb_per_s);

  std::string_view text_;
  const std::string& name_;
  const LinkLatencies& latencies_;
  std::vector<size_t> line_ends_;  // offsets
  pugi::xml_document document_;
  HostTopology host_;
  std::vector<VertexId> numa_nodes_;
  std::vector<Gpu> gpus_;
  std::map<std::string, VertexId> by_bus_;
  std::optional<VertexId> nvswitch_;
};

void Reader::read_cpu(const pugi::xml_node& cpu) {
  const std::string_view id = cpu.attribute("numaid").value();
  if (id.empty()) note(cpu, "the NUMA node has no numaid; counted instead");
  const VertexId node = host_.graph.add_vertex(
      VertexKind::kNumaNode,
      fmt::format("NUMA node {}",
                  id.empty() ? std::to_string(numa_nodes_.size()) : std::string(id)));
  for (const VertexId other : numa_nodes_) {
    join(other, node, LinkKind::kInterNuma, inter_numa_gb_per_s(cpu), latencies_.inter_numa_s);
  }
  numa_nodes_.push_back(node);
  for (const pugi::xml_node pci : cpu.children("pci")) read_device(pci, node, node, 1);
  for (const pugi::xml_node nic : cpu.children("nic")) {
    const VertexId vertex = host_.graph.add_vertex(VertexKind::kNic, "NIC");
    join(vertex, node, LinkKind::kPcie, kLocalGbPerS, latencies_.pcie_s);
    read_nic(nic, vertex);
  }
}

VertexKind Reader::kind_of(const pugi::xml_node& pci) {
  if (pci.child("gpu")) return VertexKind::kGpu;
  if (pci.child("nic")) return VertexKind::kNic;
  if (pci.child("pci")) return VertexKind::kPcieSwitch;
  const std::string_view type = pci.attribute("class").value();
  if (type.starts_with("0x03")) return VertexKind::kGpu;
  if (type.starts_with("0x02")) return VertexKind::kNic;
  if (type.starts_with("0x0604")) return VertexKind::kPcieSwitch;
  if (type.empty()) note(pci, "the device has no class; taken for neither GPU nor NIC");
  return VertexKind::kPcieDevice;
}

double Reader::pcie_gb_per_s(const pugi::xml_node& pci) {
  const std::string_view text = pci.attribute("link_speed").value();
  double speed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), speed);
  const std::string_view unit = text.substr(size_t(end - text.data()));
  if (error != std::errc() || !unit.starts_with(" GT/s") || !(speed >= 1 && speed <= 1024)) {
    note(pci, fmt::format("link_speed \"{}\" is not known; 8 GT/s assumed", text.substr(0, 40)));
    speed = kUnknownPcieGtPerS;
  }
  double width = number(pci, "link_width", 0, 64).value_or(0);
  if (width == 0) {
    note(pci, "link_width is not known; 16 assumed");
    width = kUnknownPcieWidth;
  }
  return width * speed * 0.75 / 8;  // Gbit/s per lane with its coding and headers, in bytes
}

void Reader::read_device(const pugi::xml_node& pci, VertexId above, VertexId numa_node, int depth) {
  if (depth > kMaxXmlDepth) {
    fail_at(pci,
            fmt::format("<pci> lies more than {} deep; NCCL writes no such file", kMaxXmlDepth));
  }
  const std::string bus = lower(pci.attribute("busid").value());
  if (bus.empty()) fail_at(pci, "<pci> has no busid; every device needs one");
  const VertexKind kind = kind_of(pci);
  const VertexId vertex = host_.graph.add_vertex(kind, fmt::format("{} {}", to_string(kind), bus));
  if (!by_bus_.emplace(bus, vertex).second) {
    fail_at(pci, fmt::format("<pci busid=\"{}\"> stands twice; bus ids are unique in a host", bus));
  }
  join(vertex, above, LinkKind::kPcie, pcie_gb_per_s(pci), latencies_.pcie_s);
  if (kind == VertexKind::kGpu) {
    gpus_.push_back({vertex, numa_node, pci, number(pci.child("gpu"), "dev", 0, 1 << 20)});
  }
  if (kind == VertexKind::kNic) read_nic(pci.child("nic"), vertex);
  for (const pugi::xml_node below : pci.children("pci")) {
    read_device(below, vertex, numa_node, depth + 1);
  }
}

void Reader::read_nic(const pugi::xml_node& nic, VertexId vertex) {
  double mbit_per_s = 0;
  for (const pugi::xml_node net : nic.children("net")) {
    mbit_per_s += number(net, "speed", 0, 1e9).value_or(0);
  }
  host_.nics.push_back({vertex, mbit_per_s / 8000});
  const std::string_view name = nic.child("net").attribute("name").value();
  host_.graph.rename(vertex, name.empty() ? fmt::format("NIC {}", host_.nics.size() - 1)
                                          : std::string(name.substr(0, 64)));
}

void Reader::number_gpus() {
  if (std::ranges::all_of(gpus_, [](const Gpu& gpu) { return gpu.dev.has_value(); })) {
    std::ranges::stable_sort(gpus_, {}, [](const Gpu& gpu) { return *gpu.dev; });
  }
  for (const Gpu& gpu : gpus_) {
    host_.graph.rename(gpu.vertex, fmt::format("GPU {}", host_.gpus.size()));
    host_.gpus.push_back(gpu.vertex);
  }
}

void Reader::read_gpu_links(const Gpu& gpu) {
  const pugi::xml_node node = gpu.pci.child("gpu");
  const double per_link = nvlink_gb_per_s(number(node, "sm", 0, 1000).value_or(0));
  double to_switches = 0;
  for (const pugi::xml_node link : node.children("nvlink")) {
    const double gb_per_s = per_link * number(link, "count", 1, 1024).value_or(1);
    if (std::string_view(link.attribute("tclass").value()).starts_with("0x068000")) {
      to_switches += gb_per_s;
    } else {
      read_nvlink(gpu, link, gb_per_s);
    }
  }
  if (to_switches > 0) join_nvswitch(gpu.vertex, to_switches);
  for (const pugi::xml_node link : node.children("c2c")) {
    const double count = number(link, "count", 1, 64).value_or(1);
    const auto mb_per_s = number(link, "bw", 1, 1e9);
    if (!mb_per_s) fail_at(link, "<c2c> has no bw; it must say MB/s");
    join(gpu.vertex, gpu.numa_node, LinkKind::kChipToChip, *mb_per_s * count / 1000,
         latencies_.nvlink_s);
  }
}

// Between two GPUs each end lists its own direction; a CPU's end (POWER) is not listed.
void Reader::read_nvlink(const Gpu& gpu, const pugi::xml_node& nvlink, double gb_per_s) {
  if (std::string_view(nvlink.attribute("tclass").value()).starts_with("0x068001")) {
    return join(gpu.vertex, gpu.numa_node, LinkKind::kNvLink, gb_per_s, latencies_.nvlink_s);
  }
  const std::string target = lower(nvlink.attribute("target").value());
  const auto found = by_bus_.find(target);
  if (found == by_bus_.end() || found->second == gpu.vertex) {
    note(nvlink, fmt::format("<nvlink target=\"{}\"> leads to {}; ignored", target.substr(0, 40),
                             found == by_bus_.end() ? "no device here" : "the GPU itself"));
    return;
  }
  host_.graph.add_link({.from = gpu.vertex,
                        .to = found->second,
                        .kind = LinkKind::kNvLink,
                        .gb_per_s = gb_per_s,
                        .latency_s = latencies_.nvlink_s});
}

void Reader::join_nvswitch(VertexId gpu, double gb_per_s) {
  if (!nvswitch_) nvswitch_ = host_.graph.add_vertex(VertexKind::kNvSwitch, "NVSwitch");
  join(gpu, *nvswitch_, LinkKind::kNvLink, gb_per_s, latencies_.nvlink_s);
}

}  // namespace

HostTopology parse_nccl_topology(std::string_view text, const std::string& name,
                                 const LinkLatencies& latencies) {
  return Reader(text, name, latencies).read();
}

HostTopology load_nccl_topology(const std::string& path, const LinkLatencies& latencies) {
  return parse_nccl_topology(read_text_file(path, kMaxXmlBytes), path, latencies);
}

}  // namespace gxp
