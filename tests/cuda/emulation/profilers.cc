// What a profiler of the emulated GPU is told.
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/emulation/cuda_profiler_api.h"
#include "tests/cuda/emulation/nvtx3/nvToolsExt.h"

namespace {

std::mutex mutex;
std::vector<std::string> ended;     // guarded by `mutex`
std::vector<std::string> captures;  // likewise

thread_local std::vector<std::string> open;

}  // namespace

int nvtxRangePushA(const char* name) {
  open.emplace_back(name);
  return int(open.size()) - 1;
}

int nvtxRangePop() {
  if (open.empty()) return -1;
  const std::lock_guard lock(mutex);
  ended.push_back(std::move(open.back()));
  open.pop_back();
  return int(open.size());
}

std::vector<std::string> take_emulated_ranges() {
  const std::lock_guard lock(mutex);
  return std::exchange(ended, {});
}

cudaError_t cudaProfilerStart() {
  const std::lock_guard lock(mutex);
  captures.emplace_back("start");
  return cudaSuccess;
}

cudaError_t cudaProfilerStop() {
  const std::lock_guard lock(mutex);
  captures.emplace_back("stop");
  return cudaSuccess;
}

std::vector<std::string> take_emulated_captures() {
  const std::lock_guard lock(mutex);
  return std::exchange(captures, {});
}
