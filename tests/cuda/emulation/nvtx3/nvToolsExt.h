// NVTX as a profiler that is attached sees it, with NVIDIA's names and meanings.
#pragma once

#include <string>
#include <vector>

// The level that the range had on its thread, from 0; negative: an error.
int nvtxRangePushA(const char* name);
int nvtxRangePop();

// The ranges of all threads that have ended since the last call, in the order of their ends.
std::vector<std::string> take_emulated_ranges();
