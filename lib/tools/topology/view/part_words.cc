#include "lib/tools/topology/view/part_words.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/text/joined.h"
#include "lib/base/text/plural.h"
#include "lib/topo/model/part.h"
#include "lib/topo/model/text_parts.h"

namespace gxp {
namespace {

std::string words_of(const PcieRate& rate) {
  const std::string speed = rate.gt_per_s > 0 ? fmt::format("{:g} GT/s", rate.gt_per_s) : "? GT/s";
  return rate.lanes > 0 ? fmt::format("{} x{}", speed, rate.lanes) : speed;
}

bool is_known(const PcieRate& rate) { return rate.gt_per_s > 0 || rate.lanes > 0; }

std::string_view without_0x(std::string_view text) {
  return text.starts_with("0x") ? text.substr(2) : text;
}

std::string ids_of(const PciIdentity& identity) {
  if (identity.vendor.empty() || identity.device.empty()) return "";
  return fmt::format("{}:{}", without_0x(identity.vendor), without_0x(identity.device));
}

std::string words_of(const CpuSet& cpus) {
  constexpr size_t kMostText = 40;
  const std::string list = cpus.to_list();
  if (list.size() <= kMostText) return "CPUs " + list;
  return fmt::format("{} CPUs, {}...{}", cpus.count(), list.substr(0, list.find(',', 8) + 1),
                     cpus.cpus().back());
}

std::string words_of(const GpuInfo& gpu) {
  std::vector<std::string> words;
  if (!gpu.gcn.empty())
    words.push_back(gpu.gcn.starts_with("gfx") ? gpu.gcn : "gfx" + gpu.gcn);
  else if (gpu.compute_capability)
    words.push_back(fmt::format("sm_{}", *gpu.compute_capability));
  if (gpu.memory_bytes > 0) words.push_back(format_bytes(gpu.memory_bytes));
  if (gpu.is_sliced) words.emplace_back("in MIG devices");
  if (gpu.rank) words.push_back(fmt::format("rank {}", *gpu.rank));
  return join_words(words);
}

// "GPU" and 7 of "GPU7".
std::pair<std::string_view, std::optional<int>> split_number(std::string_view name) {
  const size_t last = name.find_last_not_of("0123456789");
  const size_t digits = last == std::string_view::npos ? 0 : last + 1;
  const auto number = whole_number<int>(name.substr(digits));
  return {number ? name.substr(0, digits) : name, number};
}

bool counts_on(std::string_view name, std::string_view next) {
  const auto [stem, number] = split_number(name);
  const auto [next_stem, next_number] = split_number(next);
  return number && next_number && stem == next_stem && *number + 1 == *next_number;
}

}  // namespace

std::string words_of(const PcieLink& link) {
  if (!is_known(link.now) && !is_known(link.most)) return "";
  if (!is_known(link.now)) return "PCIe " + words_of(link.most);
  const bool slower = link.most.gt_per_s > link.now.gt_per_s;
  const bool narrower = link.most.lanes > link.now.lanes;
  return fmt::format("PCIe {}{}", words_of(link.now),
                     slower || narrower ? " of " + words_of(link.most) : "");
}

std::string words_of(const NumaNodeInfo& node) {
  std::vector<std::string> words = {node.model_name};
  if (node.model_name.empty()) words = {node.vendor.empty() ? node.architecture : node.vendor};
  if (node.model_name.empty() && node.family && node.model)
    words.back() += fmt::format(" family {} model {}", *node.family, *node.model);
  if (node.cores > 0) words.push_back(counted(size_t(node.cores), "core"));
  const CpuSet cpus = CpuSet::parse_map(node.affinity).value_or(CpuSet());
  if (!cpus.empty()) words.push_back(words_of(cpus));
  if (node.memory_bytes > 0) words.push_back("memory " + format_bytes(node.memory_bytes));
  for (const CacheInfo& cache : node.caches) {
    words.push_back(fmt::format("L{} {}{}", cache.level,
                                cache.count > 1 ? fmt::format("{} x ", cache.count) : "",
                                format_bytes(cache.bytes)));
  }
  return join_words(words);
}

std::string words_of(const PortInfo& port) {
  std::string text = port.name.empty() ? "port" : port.name;
  if (!port.interface.empty() && port.interface != port.name) text += " (" + port.interface + ")";
  if (port.mbit_per_s > 0) text += fmt::format(" {:g} Gbit/s", port.mbit_per_s / 1000);
  if (!port.link_layer.empty()) text += " " + port.link_layer;
  if (!port.state.empty() && port.state != "active" && port.state != "up") text += " " + port.state;
  return text;
}

std::string words_of_device(const Part& part) {
  std::string model;
  std::string rest;
  if (const auto* gpu = std::get_if<GpuInfo>(&part.info)) {
    model = gpu->model_name;
    rest = words_of(*gpu);
  } else if (const auto* nic = std::get_if<NicInfo>(&part.info)) {
    model = nic->model_name;
  } else if (part.kind == PartKind::kPcieSwitch || part.kind == PartKind::kPcieDevice) {
    model = part.name;
  }
  return join_words({model.empty() ? ids_of(part.identity) : model, rest});
}

std::string words_of_range(const std::vector<std::string>& names) {
  std::vector<std::string> words;
  for (size_t first = 0; first < names.size();) {
    size_t last = first;
    while (last + 1 < names.size() && counts_on(names[last], names[last + 1])) ++last;
    words.push_back(names[first]);
    if (last > first + 1) words.back() += "-" + names[last];
    if (last == first + 1) words.push_back(names[last]);
    first = last + 1;
  }
  return join_words(words);
}

std::string join_words(std::vector<std::string> words, std::string_view between) {
  std::erase(words, "");
  return joined(words, between);
}

}  // namespace gxp
