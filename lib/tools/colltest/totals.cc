#include "lib/tools/colltest/totals.h"

namespace gxp {

Totals totals_of(std::span<const CaseResult> results, int world_size, Average average) {
  Totals totals;
  size_t halves = 0;
  const auto add = [&](const CaseResult& result, const PlacementResult& half) {
    totals.wrong += half.wrong.value_or(0);
    totals.out_of_bounds += half.out_of_bounds;
    if (!moves_data(*result.bench.operation)) return;
    const double seconds = half.median_s_by_average[size_t(average)];
    totals.busbw +=
        bandwidth(*result.bench.operation, result.bench.size_bytes(), seconds, world_size).busbw;
    ++halves;
  };
  for (const CaseResult& result : results) {
    add(result, result.out_of_place);
    if (result.in_place) add(result, *result.in_place);
  }
  if (halves > 0) totals.busbw /= double(halves);
  return totals;
}

}  // namespace gxp
