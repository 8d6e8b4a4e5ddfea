// The data of a run, and what must be known of it before the run is planned.
#pragma once

#include <memory>

#include "lib/config/run_config.h"
#include "lib/data/dataset.h"

namespace gxp {

// Each may be null: no such data are read.
struct RunData {
  std::unique_ptr<const Dataset> train, valid;
};

// data.train and, if it names a file, data.valid. Errors: as Dataset's.
RunData open_data(const RunConfig& config);
std::unique_ptr<const Dataset> open_valid(const RunConfig& config);

// The run with DataConfig::documents as these data have it, as with_files() (lib/data/data_files.h)
// finds before they are opened.
RunConfig with_data(RunConfig config, const RunData& data);

}  // namespace gxp
