// The progress lines of a run.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

#include "lib/arch/architecture.h"
#include "lib/shard/rank_groups.h"
#include "lib/train/metrics.h"
#include "lib/train/step/backend.h"

namespace gxp {

// "1h02m", "3m20s", "12s".
std::string format_duration(double seconds);

// Defines MFU for these lines, with the rate of which it is a share.
std::string describe_mfu(const PeakRate& peak);

// "step 120/1000  loss 2.3456  norm 0.81  lr 6.0e-04  10240 tok/s  mfu 52.1%  eta 1m20s  14:02:31",
// with the time of day `now`; where not
// every target counts also "targets 512 of 8192".
// `seconds_per_step`: a recent average, for the estimate.
std::string progress_line(const StepMetrics& metrics, int64_t total_steps, double seconds_per_step,
                          time_t now);

// What is said once, before the first step. " (0.12 M trained)"; "" if all parameters are.
std::string describe_trained(const Architecture& architecture);
// How gradients travel with this codec.
std::string describe_codec(const std::string& codec, int hosts);
// Likewise gathered parameters.
std::string describe_gather_codec(const std::string& codec, const RankGroups& groups);

}  // namespace gxp
