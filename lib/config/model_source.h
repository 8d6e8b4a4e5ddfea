// The config.json that model.init or model.config names, and the adapter_config.json of lora.init:
// where the settings [model] and [lora] of a run come from that its own run file does not give.
#pragma once

#include <optional>
#include <string>

#include "lib/arch/config_json/config_json.h"
#include "lib/arch/lora_config.h"
#include "lib/arch/model_config.h"

namespace gxp {

struct ModelSource {
  std::string file;      // the config.json
  ModelConfig model;     // if there is no obstacle
  std::string obstacle;  // why gxp does not compute the model; "" if it does
};

// Of the weights at `init`: a directory's, or the one beside a file. Nothing if there is none, as
// for gxp's own checkpoints, or if the one beside a file is of no model. A GGUF file describes
// itself. kIo, kCorrupt: it cannot be read, or is no JSON object.
std::optional<ModelSource> source_of_weights(const std::string& init);

// `path` is a config.json or a directory with one. kIo, kCorrupt: as above.
ModelSource source_of_shape(const std::string& path);

// Of a PEFT directory; nothing if `init` is none. Errors: those of read_adapter_config().
std::optional<LoraConfig> adapter_at(const std::string& init);

// read_model(), whose obstacle is also a check of a setting or a rule of [model] that does not hold.
ModelReading read_checked_model(const Json& config);

// The first check of a setting, or rule of [model], that the model does not hold: "model.hidden
// must be at most 1048576, is 2000000"; "" if there is none.
std::string first_model_problem(const ModelConfig& model);

}  // namespace gxp
