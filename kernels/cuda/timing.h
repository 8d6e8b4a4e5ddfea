// The time of work on a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace gxp {

// Milliseconds of each of `candidates`, which queue work on `stream`: the median over some rounds.
// All run in every round, so that a changing clock affects all. Before the first round the GPU is
// kept busy, since an idle GPU needs some milliseconds to reach its clocks (an H200: 345 MHz idle,
// 1980 MHz busy). Takes about 20 ms, and at least 11 runs of each candidate.
std::vector<float> times_in_turn(cudaStream_t stream,
                                 std::span<const std::function<void()>> candidates);
// The index of the fastest by that measure; of equals the first.
size_t fastest_in_turn(cudaStream_t stream, std::span<const std::function<void()>> candidates);

}  // namespace gxp
