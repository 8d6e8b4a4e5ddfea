// gxp train --time-by-class: how long each class of kernels takes, measured and predicted.
#pragma once

#include <string>

#include "lib/config/run_config.h"
#include "lib/device/device.h"
#include "lib/replay/hardware.h"
#include "lib/report/report.h"
#include "lib/train/measure_classes.h"

namespace CLI {
class App;
}  // namespace CLI

namespace gxp {

struct TimeOptions {
  bool by_class = false;
  std::string predicted_on;  // a row of gpus(); "": the GPU at hand
};

// --time-by-class --predicted-on; after the options of a whole run, which they exclude.
void add_time_options(CLI::App& app, TimeOptions& options);

// kUsage: --predicted-on names a GPU, and no time can be predicted of the run.
void check_times(const TimeOptions& options, const RunConfig& run, int world_size);

// Prints what rank 0 measured in a run with these settings, and the prediction for the GPU that
// the options name, or for `device`, if its rates are known; else a line of the log says why there
// is none.
void print_times(const ClassMeasurement& measured, const TimeOptions& options, const RunConfig& run,
                 const Device& device, int world_size, Format format);

}  // namespace gxp
