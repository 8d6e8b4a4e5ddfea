// Results as a run would give them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/tools/colltest/result.h"

namespace gxp {

// Two ranks; every iteration takes `seconds` on rank 1, half as long on rank 0.
inline PlacementResult sample_half(double seconds, std::optional<uint64_t> wrong = 0) {
  PlacementResult half;
  const std::vector<double> times(20, seconds);
  half.slowest = summarize(times);
  half.median_s_by_average = {seconds / 2, 0.75 * seconds, seconds / 2, seconds};
  half.ranks = {{seconds / 2, 0.0}, {seconds, 1e-6}};
  half.iterations = times.size();
  half.times_s = times;
  half.wrong = wrong;
  return half;
}

inline CaseResult sample_result(const std::string& operation, size_t count, double seconds) {
  CaseResult result;
  result.bench = {find_operation(operation), DType::kF32, ReduceOp::kSum, 0, count};
  result.algorithm = "ring";
  result.segment_bytes = 1024;
  result.predicted_s = 2 * seconds;
  result.reason = "asked for";
  result.out_of_place = sample_half(seconds);
  if (has_in_place(*result.bench.operation)) result.in_place = sample_half(2 * seconds);
  return result;
}

inline std::vector<RankInfo> sample_ranks() {
  RankInfo rank{.pid = 4711, .host_number = 0, .host = {"north"}, .processor = {"A CPU"}};
  return {rank, rank};
}

}  // namespace gxp
