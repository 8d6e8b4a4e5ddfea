// Writes .metadata (dcp_metadata.h) of a checkpoint whose tensors have one chunk each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/ckpt/torch/dcp_metadata.h"

namespace gxp {

struct DcpWritten {
  DcpKey key;
  std::optional<TensorInfo> tensor = {};  // nothing: no tensor
  DcpStorageInfo place = {};
};

// The pickle. `files` are the names that places are in.
std::string make_dcp_metadata(const std::vector<DcpWritten>& entries,
                              const std::vector<std::string>& files);

}  // namespace gxp
