// What gxp calls of CUDA's profiler control, with NVIDIA's names and meanings, for the emulated GPU.
#pragma once

#include <string>
#include <vector>

#include "tests/cuda/emulation/cuda_runtime_api.h"

cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();

// "start", "stop", ...: the calls since the last call of this.
std::vector<std::string> take_emulated_captures();
