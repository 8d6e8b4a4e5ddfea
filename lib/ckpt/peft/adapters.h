// Adapters among a checkpoint's tensors. Their names are those of PEFT's files:
// base_model.model.MODULE.lora_A.weight, and lora_B. Only this folder includes it.
#pragma once

#include <string>
#include <string_view>

#include "lib/arch/adapter_config.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

inline constexpr std::string_view kAdapterPrefix = "base_model.model.";
inline constexpr std::string_view kFirstSuffix = ".lora_A.weight";
inline constexpr std::string_view kSecondSuffix = ".lora_B.weight";

inline bool is_adapter(const NamedTensor& tensor) {
  const std::string& name = tensor.info.name;
  return tensor.info.role == Role::kWeight && name.starts_with(kAdapterPrefix) &&
         (name.ends_with(kFirstSuffix) || name.ends_with(kSecondSuffix));
}

// What the source records of its adapters. kConfig: nothing.
AdapterConfig adapter_of(const NamedTensors& tensors);

}  // namespace gxp
