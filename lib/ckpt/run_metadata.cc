#include "lib/ckpt/run_metadata.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace gxp {

std::map<std::string, std::string> with_run_metadata(const NamedTensors& tensors) {
  auto metadata = tensors.metadata;
  if (tensors.step) metadata["gxp.step"] = fmt::format("{}", *tensors.step);
  for (const auto& [key, value] : tensors.config) {
    if (key.starts_with("model.") || key.starts_with("lora.")) metadata["gxp." + key] = value;
  }
  return metadata;
}

void take_run_metadata(NamedTensors& tensors) {
  auto& metadata = tensors.metadata;
  if (const auto step = metadata.find("gxp.step"); step != metadata.end()) {
    char* end = nullptr;
    const auto value = std::strtoull(step->second.c_str(), &end, 10);
    if (end != step->second.c_str() && *end == '\0') tensors.step = value;
    metadata.erase(step);
  }
  for (const std::string prefix : {"gxp.model.", "gxp.lora."}) {
    for (auto entry = metadata.lower_bound(prefix);
         entry != metadata.end() && entry->first.starts_with(prefix);) {
      tensors.config.emplace_back(entry->first.substr(4), entry->second);
      entry = metadata.erase(entry);
    }
  }
}

}  // namespace gxp
