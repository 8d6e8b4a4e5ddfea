// The features of each version of NCCL, and what gxp does where one is missing. Sources: the tags
// of NVIDIA/nccl, and its release notes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/collective/engine/nccl/nccl_library.h"

namespace gxp {

enum class NcclFeature : uint8_t { kCtaLimits, kSplit, kRegistration, kWindows, kSharedGpu };

struct NcclFeatureRow {
  NcclFeature feature;
  NcclVersion since;
  std::string_view name;
  std::string_view without;  // what happens instead
};

// By version.
std::span<const NcclFeatureRow> nccl_features();
bool has(const NcclVersion& version, NcclFeature feature);
// One line for each feature that the version lacks: "NCCL 2.16.2 has no ncclCommSplit (2.18.1):
// ...".
std::vector<std::string> missing_features(const NcclVersion& version);

// Thread blocks that NCCL may use at the same time; 0: as many as it likes.
struct CtaLimits {
  int min = 0;
  int max = 0;
};

// For a nonblocking communicator. kConfig: the limits contradict each other, or the version has
// none.
NcclConfig nccl_config(const NcclVersion& version, const CtaLimits& limits);

}  // namespace gxp
