#include "lib/tools/topology/view/visible_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "lib/base/error.h"
#include "lib/base/text/ascii.h"
#include "lib/topo/model/host_tree.h"
#include "lib/topo/model/text_parts.h"

namespace gxp {
namespace {

// The driver's numbers, and NVML's, are by bus id.
std::vector<PartId> gpus_by_bus(const HostTree& host) {
  std::vector<PartId> gpus = host.all_of(PartKind::kGpu);
  std::ranges::stable_sort(gpus, {}, [&](PartId gpu) {
    const auto& number = info_of<GpuInfo>(host[gpu]).number;
    return std::tuple(!number, number.value_or(0), host[gpu].bus_id);
  });
  return gpus;
}

bool are_alike(const HostTree& host, const std::vector<PartId>& gpus) {
  return std::ranges::all_of(gpus, [&](PartId gpu) {
    const Part& one = host[gpu];
    const Part& first = host[gpus[0]];
    return one.identity.vendor == first.identity.vendor &&
           one.identity.device == first.identity.device &&
           info_of<GpuInfo>(one).model_name == info_of<GpuInfo>(first).model_name;
  });
}

bool is_uuid(std::string_view word) { return word.starts_with("GPU-") || word.starts_with("MIG-"); }

bool has_uuid(const GpuInfo& gpu, std::string_view word) {
  return gpu.uuid.starts_with(word) ||
         std::ranges::any_of(gpu.slices,
                             [&](const std::string& slice) { return slice.starts_with(word); });
}

PartId find_uuid(const HostTree& host, const std::vector<PartId>& gpus, std::string_view word,
                 const std::string& list) {
  std::string_view name = word;
  // Before driver 470 a MIG device was MIG-GPU-UUID/INSTANCE/INSTANCE.
  if (name.starts_with("MIG-GPU-")) name = name.substr(4, name.find('/') - 4);
  PartId found = kNoPart;
  for (const PartId gpu : gpus) {
    if (!has_uuid(info_of<GpuInfo>(host[gpu]), name)) continue;
    if (found != kNoPart)
      fail(ErrorKind::kConfig, "read CUDA_VISIBLE_DEVICES={}: several GPUs have UUIDs {}...", list,
           word);
    found = gpu;
  }
  if (found == kNoPart)
    fail(ErrorKind::kConfig,
         "read CUDA_VISIBLE_DEVICES={}: none of the {} GPUs here has the UUID {}; nvidia-smi -L "
         "lists them",
         list, gpus.size(), word);
  return found;
}

std::vector<PartId> pick(const HostTree& host, const std::vector<PartId>& gpus,
                         const std::string& list) {
  std::vector<PartId> shown;
  for (const std::string_view piece : split(list, ',')) {
    const std::string_view word = trimmed(piece);
    PartId gpu = kNoPart;
    if (is_uuid(word)) {
      gpu = find_uuid(host, gpus, word, list);
      if (word.starts_with("MIG-")) return {gpu};
    } else {
      const auto index = whole_number<size_t>(word);
      if (!index || *index >= gpus.size()) break;  // as the driver does
      gpu = gpus[*index];
    }
    if (std::ranges::find(shown, gpu) != shown.end())
      fail(ErrorKind::kConfig, "read CUDA_VISIBLE_DEVICES={}: {} is a GPU that it names twice",
           list, word);
    shown.push_back(gpu);
  }
  if (shown.empty())
    fail(ErrorKind::kConfig,
         "read CUDA_VISIBLE_DEVICES={}: it hides all {} GPUs from ranks; unset it, or set numbers "
         "from 0 to {}",
         list, gpus.size(), gpus.size() - 1);
  return shown;
}

}  // namespace

std::vector<std::string> rank_visible_gpus(HostTree& host, const Environment& environment) {
  const std::vector<PartId> gpus = gpus_by_bus(host);
  if (gpus.empty()) return {};
  std::vector<std::string> notes;
  std::vector<PartId> shown = gpus;
  bool by_uuid = false;  // so the driver's order does not matter
  // Set but empty, it hides all.
  if (const auto list = environment.find("CUDA_VISIBLE_DEVICES"); list != environment.end()) {
    shown = pick(host, gpus, list->second);
    by_uuid = is_uuid(trimmed(list->second));
    notes.push_back(fmt::format("CUDA_VISIBLE_DEVICES={} shows ranks {} of {} GPUs", list->second,
                                shown.size(), gpus.size()));
  }
  for (const PartId gpu : gpus) std::get<GpuInfo>(host[gpu].info).rank.reset();
  for (size_t i = 0; i < shown.size(); ++i) std::get<GpuInfo>(host[shown[i]].info).rank = int(i);
  const std::string* order = find_variable(environment, "CUDA_DEVICE_ORDER");
  if (by_uuid || gpus.size() == 1 || (order != nullptr && *order == "PCI_BUS_ID")) return notes;
  notes.emplace_back(
      are_alike(host, gpus)
          ? "local ranks are assumed to follow bus ids, since all GPUs are the same model; "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID ensures it"
          : "GPUs differ, and the CUDA driver's order, fastest first, is unknown here: local ranks "
            "are assumed to follow bus ids, which holds with CUDA_DEVICE_ORDER=PCI_BUS_ID");
  return notes;
}

}  // namespace gxp
