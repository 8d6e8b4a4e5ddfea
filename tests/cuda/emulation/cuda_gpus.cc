// Which GPUs there are.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/emulation/cuda_runtime_api.h"
#include "tests/cuda/emulation/streams.h"

namespace {

std::vector<int> listed_gpus() {
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) return {0};
  std::vector<int> gpus;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) gpus.push_back(std::stoi(word));
  return gpus;
}

std::mutex mutex;
std::pair<int, int> capability = {9, 0};  // from here on guarded by `mutex`
int multiprocessors = 132;
std::vector<int> gpus = listed_gpus();  // by their numbers on the host
bool has_peer_access = true;

thread_local int current_gpu = 0;

}  // namespace

void set_emulated_gpus(int count, bool peer_access) {
  const std::lock_guard lock(mutex);
  gpus.resize(size_t(count));
  std::iota(gpus.begin(), gpus.end(), 0);
  has_peer_access = peer_access;
}

int emulated_gpu_on_host(int device) {
  const std::lock_guard lock(mutex);
  return gpus.at(size_t(device));
}

cudaError_t cudaGetDeviceCount(int* count) {
  const std::lock_guard lock(mutex);
  *count = int(gpus.size());
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int /*device*/, int /*peer*/) {
  const std::lock_guard lock(mutex);
  *can = has_peer_access ? 1 : 0;
  return cudaSuccess;
}

void set_emulated_capability(int major, int minor) {
  const std::lock_guard lock(mutex);
  capability = {major, minor};
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const std::lock_guard lock(mutex);
  if (device < 0 || device >= int(gpus.size())) return cudaErrorInvalidDevice;
  *properties = {"emulated GPU", gxp::emulation::kDeviceBytes, capability.first, capability.second,
                 multiprocessors};
  return cudaSuccess;
}

void set_emulated_multiprocessors(int count) {
  const std::lock_guard lock(mutex);
  multiprocessors = count;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const std::lock_guard lock(mutex);
  if (device < 0 || device >= int(gpus.size())) return cudaErrorInvalidDevice;
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = multiprocessors;
      return cudaSuccess;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = 2048;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = 227 * 1024;
      return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

cudaError_t cudaSetDevice(int device) {
  const std::lock_guard lock(mutex);
  if (device < 0 || device >= int(gpus.size())) return cudaErrorInvalidDevice;
  current_gpu = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_gpu;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  std::snprintf(text, size_t(bytes), "0000:%02X:00.0", 0x3b + emulated_gpu_on_host(device));
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
