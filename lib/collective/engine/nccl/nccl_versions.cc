#include "lib/collective/engine/nccl/nccl_versions.h"

#include <algorithm>
#include <array>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr std::array kFeatures = {
    NcclFeatureRow{NcclFeature::kCtaLimits,
                   {2, 17, 1},
                   "minCTAs and maxCTAs",
                   "comm.nccl_min_ctas and comm.nccl_max_ctas are refused"},
    NcclFeatureRow{NcclFeature::kSplit,
                   {2, 18, 1},
                   "ncclCommSplit",
                   "ranks of a group join a communicator of its own by a new unique id"},
    NcclFeatureRow{NcclFeature::kRegistration,
                   {2, 19, 1},
                   "ncclMemAlloc and ncclCommRegister",
                   "NCCL copies through buffers of its own"},
    NcclFeatureRow{NcclFeature::kWindows,
                   {2, 27, 3},
                   "ncclCommWindowRegister",
                   "buffers are registered, but not as symmetric windows"},
    NcclFeatureRow{NcclFeature::kSharedGpu,
                   {2, 30, 3},
                   "NCCL_MULTI_RANK_GPU_ENABLE",
                   "each rank needs a GPU of its own"},
};

}  // namespace

std::span<const NcclFeatureRow> nccl_features() { return kFeatures; }

bool has(const NcclVersion& version, NcclFeature feature) {
  return version >= std::ranges::find(kFeatures, feature, &NcclFeatureRow::feature)->since;
}

std::vector<std::string> missing_features(const NcclVersion& version) {
  std::vector<std::string> lines;
  for (const NcclFeatureRow& row : kFeatures)
    if (version < row.since)
      lines.push_back(fmt::format("NCCL {} has no {} ({}): {}", to_string(version), row.name,
                                  to_string(row.since), row.without));
  return lines;
}

NcclConfig nccl_config(const NcclVersion& version, const CtaLimits& limits) {
  const bool limited = limits.min > 0 || limits.max > 0;
  if (limited && !has(version, NcclFeature::kCtaLimits))
    fail(ErrorKind::kConfig,
         "comm.nccl_min_ctas = {}, comm.nccl_max_ctas = {}: {}; leave them at 0 or install a newer "
         "one",
         limits.min, limits.max, missing_features(version).front());
  if (limits.max > 0 && limits.min > limits.max)
    fail(ErrorKind::kConfig, "comm.nccl_min_ctas = {}: more than comm.nccl_max_ctas, {}",
         limits.min, limits.max);
  NcclConfig config;
  if (limits.min > 0) config.min_ctas = limits.min;
  if (limits.max > 0) config.max_ctas = limits.max;
  // NCCL does not look at members that came after the version that is said here; 2.14's were these.
  if (!has(version, NcclFeature::kCtaLimits)) {
    config.version = 21400;
    config.size = offsetof(NcclConfig, cga_cluster_size) + sizeof(int);
  } else if (!has(version, NcclFeature::kSplit)) {
    config.version = 21700;
    config.size = offsetof(NcclConfig, split_share);
  }
  return config;
}

}  // namespace gxp
