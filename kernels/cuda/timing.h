// The time of work on a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace gxp {

// Milliseconds of each of `ways`, which queue on `stream`: the median of some rounds. All run in
// every round, so that a changing clock affects all. Before the first round the GPU is kept busy,
// since an idle GPU needs some milliseconds to reach its clocks (an H200: 345 MHz idle, 1980 MHz
// busy). Takes about 20 ms, and of each way at least 11 runs.
std::vector<float> times_in_turn(cudaStream_t stream, std::span<const std::function<void()>> ways);
// The fastest of them by that, of equals the first.
size_t fastest_in_turn(cudaStream_t stream, std::span<const std::function<void()>> ways);

}  // namespace gxp
