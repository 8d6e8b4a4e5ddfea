// A run's settings as the JSON of DeepSpeed.
#pragma once

#include <string>
#include <vector>

#include "lib/config/run_config.h"

namespace gxp {

struct DeepSpeedExport {
  std::string json;                  // indented, with a line end
  std::vector<std::string> refused;  // what DeepSpeed cannot do: "optim.name: it has no adafactor"
  std::vector<std::string>
      left_out;  // settings that are not DeepSpeed's, but the training program's
};

// import_file() of the JSON gives the same settings, of those that it says. Nothing is refused for a
// setting that has its default and does not count.
DeepSpeedExport export_deepspeed(const RunConfig& run);

}  // namespace gxp
