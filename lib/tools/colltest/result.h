// The measurements of one case, on rank 0.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/tools/colltest/cases.h"
#include "lib/tools/colltest/statistics.h"

namespace gxp {

struct RankTiming {
  double median_s = 0;
  // The median of the delay after the first rank's call; empty if the ranks share no clock.
  std::optional<double> late_s;
};

// The results of one of a row's two placements: out of place, or in place.
struct PlacementResult {
  Summary slowest;                              // seconds of the slowest rank, over the iterations
  std::array<double, 4> median_s_by_average{};  // by Average
  std::vector<RankTiming> ranks;
  size_t iterations = 0;
  std::vector<double> times_s;    // of the slowest rank; kept only on demand
  std::optional<uint64_t> wrong;  // elements, over all ranks and checks; empty: not checked
  uint64_t out_of_bounds = 0;     // guard words that some call overwrote
};

struct CaseResult {
  BenchCase bench;
  std::string algorithm;
  int channels = 1;
  size_t segment_bytes = 0;
  std::optional<double> predicted_s;  // by the communicator's cost model
  std::string reason;                 // of the choice
  PlacementResult out_of_place;
  std::optional<PlacementResult> in_place;  // empty: the operation has none
};

// Facts that each rank reports once about itself.
struct RankInfo {
  int32_t pid = 0;
  int32_t host_number = 0;        // as in Communicator::hosts()
  int32_t gpu = -1;               // on its host; -1: none
  std::array<char, 16> bus_id{};  // of the GPU, "0000:3b:00.0"
  std::array<char, 64> host{};
  std::array<char, 64> processor{};  // or the GPU
};

}  // namespace gxp
