// PEFT's adapter_config.json as the settings [lora], and back. Pure.
// Source: peft 0.21, tuners/lora/config.py.
#pragma once

#include <string>
#include <string_view>

#include "lib/arch/lora_config.h"

namespace gxp {

struct AdapterConfig {
  LoraConfig lora = {};
  bool transposed = false;  // of (inputs, outputs) matrices: fan_in_fan_out
  std::string base = {};    // base_model_name_or_path
};

// kConfig, naming `path` and the key: an adapter of a kind that gxp does not compute. kCorrupt: no
// JSON object, or a value of the wrong type.
AdapterConfig read_adapter_config(std::string_view text, const std::string& path);

std::string make_adapter_config(const AdapterConfig& config);

}  // namespace gxp
