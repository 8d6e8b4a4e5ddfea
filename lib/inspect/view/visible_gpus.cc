#include "lib/inspect/view/visible_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "lib/base/error.h"
#include "lib/base/text/ascii.h"
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

std::vector<PartId> pick(const std::vector<PartId>& gpus, const std::string& list) {
  std::vector<PartId> shown;
  for (const std::string_view piece : split(list, ',')) {
    const std::string_view word = trimmed(piece);
    if (word.starts_with("GPU-") || word.starts_with("MIG-"))
      fail(ErrorKind::kConfig,
           "read CUDA_VISIBLE_DEVICES={}: {} is a UUID, which gxp cannot match with a GPU; set "
           "numbers for this command",
           list, word);
    const auto index = whole_number<size_t>(word);
    if (!index || *index >= gpus.size()) break;  // as the driver does
    if (std::ranges::find(shown, gpus[*index]) != shown.end())
      fail(ErrorKind::kConfig, "read CUDA_VISIBLE_DEVICES={}: it names GPU {} twice", list, *index);
    shown.push_back(gpus[*index]);
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
  // Set but empty, it hides all.
  if (const auto list = environment.find("CUDA_VISIBLE_DEVICES"); list != environment.end()) {
    shown = pick(gpus, list->second);
    notes.push_back(fmt::format("CUDA_VISIBLE_DEVICES={} shows ranks {} of {} GPUs", list->second,
                                shown.size(), gpus.size()));
  }
  for (const PartId gpu : gpus) std::get<GpuInfo>(host[gpu].info).rank.reset();
  for (size_t i = 0; i < shown.size(); ++i) std::get<GpuInfo>(host[shown[i]].info).rank = int(i);
  const std::string* order = find_variable(environment, "CUDA_DEVICE_ORDER");
  if (gpus.size() == 1 || (order != nullptr && *order == "PCI_BUS_ID")) return notes;
  notes.emplace_back(
      are_alike(host, gpus)
          ? "local ranks are taken to follow bus ids, as all GPUs are alike; "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID makes sure"
          : "GPUs differ, and the CUDA driver puts the fastest first, which is not known here: "
            "local ranks are taken by bus id, which is right with CUDA_DEVICE_ORDER=PCI_BUS_ID");
  return notes;
}

}  // namespace gxp
