#include "tests/cuda/emulation/multicast.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "tests/cuda/emulation/cuda_runtime.h"

namespace gxp::emulation {
namespace {

constexpr size_t kMostGpus = 64;

// Where a GPU's memory is, once it is bound.
struct Bound {
  std::atomic<int> process;  // 0: it is not
  std::atomic<int> fd;       // -1: not any more
};

// An object, as its file has it.
struct Object {
  unsigned devices;
  size_t bytes;
  std::atomic<uint64_t> joined;  // a bit for each GPU
  std::array<Bound, kMostGpus> bound;
};

void unmap_object(Object* object) { munmap(object, sizeof *object); }
using ObjectMapping = std::unique_ptr<Object, void (*)(Object*)>;

ObjectMapping map_object(int fd) {
  void* const at = mmap(nullptr, sizeof(Object), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) give_up("an object cannot be mapped");
  return {static_cast<Object*>(at), unmap_object};
}

bool is_complete(const Object& object) {
  return std::popcount(object.joined.load()) == int(object.devices);
}

// Addresses of this process, and what it has found behind them so far.
struct Mapped {
  size_t bytes = 0;
  ObjectMapping object{nullptr, unmap_object};
  bool allowed = false;
  std::array<std::byte*, kMostGpus> memories{};
};

std::mutex mutex;
std::function<CUresult(MulticastCall)> hook;  // from here on guarded by `mutex`
std::map<CUdeviceptr, Mapped> mappings;

// Null: its process has ended, or it is not bound any more.
std::byte* find_memory(Mapped& mapped, size_t gpu) {
  const Bound& bound = mapped.object->bound[gpu];
  const int process = bound.process.load();
  if (process == 0) give_up("the switch is used while a GPU has bound no memory");
  const int their_fd = bound.fd.load();
  if (their_fd < 0) return nullptr;
  std::byte*& memory = mapped.memories[gpu];
  if (memory != nullptr) return memory;
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(their_fd);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* const at = mmap(nullptr, mapped.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at == MAP_FAILED) give_up("memory behind the switch cannot be mapped");
  memory = static_cast<std::byte*>(at);
  return memory;
}

}  // namespace

void set_multicast_hook(std::function<CUresult(MulticastCall)> asked) {
  const std::lock_guard lock(mutex);
  hook = std::move(asked);
}

CUresult ask_multicast_hook(MulticastCall call) {
  std::unique_lock lock(mutex);
  const auto asked = hook;
  lock.unlock();
  return asked ? asked(call) : CUDA_SUCCESS;
}

std::vector<std::byte*> places_behind(const std::byte* at) {
  const auto address = CUdeviceptr(at);
  const std::lock_guard lock(mutex);
  auto next = mappings.upper_bound(address);
  if (next == mappings.begin()) give_up("the switch is used at an address that it does not have");
  auto& [begin, mapped] = *--next;
  if (address - begin + sizeof(uint4) > mapped.bytes || address % sizeof(uint4) != 0 ||
      !mapped.allowed)
    give_up("the switch is used where it must not be");
  std::vector<std::byte*> places;
  const uint64_t joined = mapped.object->joined.load();
  for (size_t gpu = 0; gpu < kMostGpus; ++gpu) {
    if ((joined >> gpu & 1) == 0) continue;
    std::byte* const memory = find_memory(mapped, gpu);
    if (memory != nullptr) places.push_back(memory + (address - begin));
  }
  return places;
}

// Other files here have no seals.
bool is_multicast(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

CUresult map_multicast(CUdeviceptr at, size_t size, int fd) {
  if (const CUresult wanted = ask_multicast_hook(MulticastCall::kMap); wanted != CUDA_SUCCESS)
    return wanted;
  Mapped mapped{.bytes = size, .object = map_object(fd)};
  if (!is_complete(*mapped.object)) give_up("mapped before all GPUs have joined: it would wait");
  if (size != mapped.object->bytes) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(mutex);
  mappings.insert_or_assign(at, std::move(mapped));
  return CUDA_SUCCESS;
}

bool unmap_multicast(CUdeviceptr at) {
  const std::lock_guard lock(mutex);
  const auto found = mappings.find(at);
  if (found == mappings.end()) return false;
  for (std::byte* memory : found->second.memories)
    if (memory != nullptr) munmap(memory, found->second.bytes);
  mappings.erase(found);
  return true;
}

bool allow_multicast(CUdeviceptr at) {
  const std::lock_guard lock(mutex);
  const auto found = mappings.find(at);
  if (found == mappings.end()) return false;
  found->second.allowed = true;
  return true;
}

}  // namespace gxp::emulation

using gxp::emulation::ask_multicast_hook;
using gxp::emulation::MulticastCall;

CUresult cuMulticastGetGranularity(size_t* granularity, const CUmulticastObjectProp* /*prop*/,
                                   CUmulticastGranularity_flags /*option*/) {
  *granularity = gxp::emulation::kPageBytes;
  return ask_multicast_hook(MulticastCall::kGranularity);
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle* handle,
                           const CUmulticastObjectProp* prop) {
  if (const CUresult wanted = ask_multicast_hook(MulticastCall::kCreate); wanted != CUDA_SUCCESS)
    return wanted;
  if (prop->size % gxp::emulation::kPageBytes != 0 || prop->flags != 0 ||
      prop->numDevices > gxp::emulation::kMostGpus)
    return CUDA_ERROR_INVALID_VALUE;
  const int fd = memfd_create("emulated multicast", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ftruncate(fd, sizeof(gxp::emulation::Object)) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  const auto object = gxp::emulation::map_object(fd);
  object->devices = prop->numDevices;
  object->bytes = prop->size;
  return gxp::emulation::handle_of(fd, handle);
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device) {
  if (const CUresult wanted = ask_multicast_hook(MulticastCall::kAdd); wanted != CUDA_SUCCESS)
    return wanted;
  const auto object = gxp::emulation::map_object(gxp::emulation::descriptor(handle));
  const bool is_full = is_complete(*object);
  const uint64_t before = object->joined.fetch_or(uint64_t{1} << device);
  return is_full || (before >> device & 1) != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
                            CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                            unsigned long long flags) {
  if (const CUresult wanted = ask_multicast_hook(MulticastCall::kBind); wanted != CUDA_SUCCESS)
    return wanted;
  const auto object = gxp::emulation::map_object(gxp::emulation::descriptor(handle));
  if (!is_complete(*object))
    gxp::emulation::give_up("bound before all GPUs have joined: it would wait");
  const int gpu = gxp::emulation::gpu_of(memory);
  struct stat status {};
  fstat(gxp::emulation::descriptor(memory), &status);
  auto& bound = object->bound[size_t(gpu)];
  if (offset != 0 || memory_offset != 0 || flags != 0 || size != object->bytes ||
      size != size_t(status.st_size) || (object->joined.load() >> gpu & 1) == 0 ||
      bound.process.load() != 0)
    return CUDA_ERROR_INVALID_VALUE;
  bound.fd = fcntl(gxp::emulation::descriptor(memory), F_DUPFD_CLOEXEC, 0);
  bound.process = getpid();
  return CUDA_SUCCESS;
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset,
                           size_t size) {
  const auto object = gxp::emulation::map_object(gxp::emulation::descriptor(handle));
  auto& bound = object->bound[size_t(device)];
  const int fd = bound.fd.exchange(-1);
  if (offset != 0 || size != object->bytes || bound.process.load() != getpid() || fd < 0)
    return CUDA_ERROR_INVALID_VALUE;
  close(fd);
  return CUDA_SUCCESS;
}
