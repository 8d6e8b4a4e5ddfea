#include "tests/cuda/emulation/cuda_runtime_api.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda/emulation/streams.h"

struct Done {
  bool yes = false;
  std::chrono::nanoseconds at{};     // by gpu_time()
  EmulatedStream* stream = nullptr;  // where it will become so
};

struct EmulatedEvent {
  std::shared_ptr<Done> point;  // of the last record; owners: events, queues
};

using Works = std::vector<std::function<void()>>;

struct Capture {
  std::thread::id thread;
  Works works;
  bool is_spoilt = false;
};

struct EmulatedStream {
  int device = 0;
  std::deque<std::function<bool()>> queue;  // each is tried until it is done
  std::thread::id runner;                   // of the first of them, if any
  std::optional<Capture> capture;
};

struct EmulatedGraph {
  Works works;
};

struct EmulatedExecutable {
  std::shared_ptr<const Works> works;  // owners: it, queues
};

namespace {

using gxp::emulation::kDeviceBytes;

// One for all: no two kernels run at once. Recursive, because running one stream may run another.
class Turn {
 public:
  void lock() {
    mutex_.lock();
    ++depth_;
  }
  void unlock() {
    --depth_;
    mutex_.unlock();
  }
  // Lets others run; for the owner.
  void pass(std::chrono::nanoseconds time) {
    const int depth = depth_;
    for (int i = 0; i < depth; ++i) unlock();
    std::this_thread::sleep_for(time);
    for (int i = 0; i < depth; ++i) lock();
  }

 private:
  std::recursive_mutex mutex_;
  int depth_ = 0;  // guarded by mutex_
};
Turn mutex;
std::map<const std::byte*, size_t> device_memory;  // from here on guarded by `mutex`
std::map<const std::byte*, size_t> pinned_memory;
size_t device_bytes = 0;
size_t device_limit = kDeviceBytes;
std::set<EmulatedStream*> streams;
std::function<void()> work_hook;
std::chrono::nanoseconds spent{};

std::chrono::nanoseconds gpu_time() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec) + spent;
}

bool lies_in(const std::map<const std::byte*, size_t>& memory, const void* at) {
  const auto* address = static_cast<const std::byte*>(at);
  auto next = memory.upper_bound(address);
  if (next == memory.begin()) return false;
  --next;
  return address < next->first + next->second;
}

bool is_pageable(const void* at) {
  return !lies_in(device_memory, at) && !lies_in(pinned_memory, at);
}

// Whether it is done. Work that passes its turn is not overtaken on its stream.
bool run_first(EmulatedStream& stream) {
  const auto me = std::this_thread::get_id();
  if (stream.runner != std::thread::id() && stream.runner != me) return false;
  std::function<bool()> work = std::move(stream.queue.front());
  const auto runner = std::exchange(stream.runner, me);
  const bool done = work();
  stream.runner = runner;
  if (done)
    stream.queue.pop_front();
  else
    stream.queue.front() = std::move(work);
  return done;
}

// Whether the stream has come to its end, or nothing is left of it; else it waits for others.
bool run_on(EmulatedStream* stream) {
  const std::lock_guard lock(mutex);
  if (!streams.contains(stream)) return true;
  while (!stream->queue.empty())
    if (!run_first(*stream)) return false;
  return true;
}

// Without `mutex`: what the stream waits for may be another thread's.
void run_all(EmulatedStream* stream) {
  while (!run_on(stream)) std::this_thread::yield();
}

// Of the calling thread's GPU.
void run_all_streams() {
  int device = 0;
  cudaGetDevice(&device);
  std::set<EmulatedStream*> all;
  {
    const std::lock_guard lock(mutex);
    all = streams;
    std::erase_if(all, [&](const EmulatedStream* stream) { return stream->device != device; });
  }
  for (EmulatedStream* stream : all) run_all(stream);
}

cudaError_t spoil(Capture& capture, cudaError_t cause = cudaErrorStreamCaptureUnsupported) {
  capture.is_spoilt = true;
  return cause;
}

// What no stream of its own is needed for, and no thread may do that captures one.
cudaError_t check_not_capturing() {
  for (EmulatedStream* stream : streams) {
    if (stream->capture && stream->capture->thread == std::this_thread::get_id())
      return spoil(*stream->capture);
  }
  return cudaSuccess;
}
// What asks for the state of a stream.
cudaError_t check_not_captured(EmulatedStream* stream) {
  return stream != nullptr && stream->capture ? spoil(*stream->capture) : check_not_capturing();
}

cudaError_t keep(Capture& capture, std::function<void()> work) {
  if (capture.thread != std::this_thread::get_id())
    return spoil(capture, cudaErrorStreamCaptureWrongThread);
  if (capture.is_spoilt) return cudaErrorStreamCaptureInvalidated;
  capture.works.push_back(std::move(work));
  return cudaSuccess;
}

void take(std::map<const std::byte*, size_t>& memory, void** out, size_t bytes) {
  *out = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*out, 0xcd, bytes);  // not zero, as a GPU's
  memory[static_cast<const std::byte*>(*out)] = bytes;
}

cudaError_t give_back(std::map<const std::byte*, size_t>& memory, void* at) {
  if (at == nullptr) return cudaSuccess;
  if (memory.erase(static_cast<const std::byte*>(at)) == 0) return cudaErrorInvalidValue;
  std::free(at);
  return cudaSuccess;
}

}  // namespace

namespace gxp::emulation {

void pass_turn(std::chrono::nanoseconds time) { mutex.pass(time); }
void spend(std::chrono::nanoseconds time) { spent += time; }

void set_work_hook(std::function<void()> hook) { work_hook = std::move(hook); }

cudaError_t enqueue_until(cudaStream_t stream, std::function<bool()> attempt) {
  const std::lock_guard lock(mutex);
  if (work_hook) work_hook();
  if (stream->capture) return spoil(*stream->capture);
  stream->queue.push_back(std::move(attempt));
  return cudaSuccess;
}

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  const std::lock_guard lock(mutex);
  if (work_hook) work_hook();
  if (stream != nullptr && stream->capture) return keep(*stream->capture, std::move(work));
  if (stream != nullptr) {
    stream->queue.emplace_back([work = std::move(work)] {
      work();
      return true;
    });
    return cudaSuccess;
  }
  if (const cudaError_t refused = check_not_capturing(); refused != cudaSuccess) return refused;
  work();
  return cudaSuccess;
}

}  // namespace gxp::emulation

namespace gxp::emulation {

LittleMemory::LittleMemory(size_t bytes) {
  const std::lock_guard lock(mutex);
  device_limit = device_bytes + bytes;
}

LittleMemory::~LittleMemory() {
  const std::lock_guard lock(mutex);
  device_limit = kDeviceBytes;
}

bool fits_device_memory(size_t bytes) {
  const std::lock_guard lock(mutex);
  return bytes <= device_limit - device_bytes;
}

bool add_device_memory(const std::byte* at, size_t bytes) {
  const std::lock_guard lock(mutex);
  if (!fits_device_memory(bytes)) return false;
  device_bytes += bytes;
  device_memory[at] = bytes;
  return true;
}

void remove_device_memory(const std::byte* at) {
  const std::lock_guard lock(mutex);
  device_bytes -= device_memory.at(at);
  device_memory.erase(at);
}

}  // namespace gxp::emulation

using gxp::emulation::enqueue;
using gxp::emulation::enqueue_until;

cudaError_t cudaDeviceSynchronize() {
  {
    const std::lock_guard lock(mutex);
    if (const cudaError_t refused = check_not_capturing(); refused != cudaSuccess) return refused;
  }
  run_all_streams();
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const std::lock_guard lock(mutex);
  *total = kDeviceBytes;
  *free = device_limit - device_bytes;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const std::lock_guard lock(mutex);
  if (const cudaError_t refused = check_not_capturing(); refused != cudaSuccess) return refused;
  if (bytes > device_limit - device_bytes) return cudaErrorMemoryAllocation;
  device_bytes += bytes;
  take(device_memory, memory, bytes);
  return cudaSuccess;
}

// Waits for all that is queued on the GPU, as the runtime's does.
cudaError_t cudaFree(void* memory) {
  if (const cudaError_t refused = cudaDeviceSynchronize(); refused != cudaSuccess) return refused;
  const std::lock_guard lock(mutex);
  const auto found = device_memory.find(static_cast<const std::byte*>(memory));
  if (found != device_memory.end()) device_bytes -= found->second;
  return give_back(device_memory, memory);
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned /*flags*/) {
  const std::lock_guard lock(mutex);
  if (const cudaError_t refused = check_not_capturing(); refused != cudaSuccess) return refused;
  take(pinned_memory, memory, bytes);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  const std::lock_guard lock(mutex);
  if (const cudaError_t refused = check_not_capturing(); refused != cudaSuccess) return refused;
  return give_back(pinned_memory, memory);
}

cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  return cudaMemsetAsync(memory, value, bytes, nullptr);
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return enqueue(stream, [=] { std::memset(memory, value, bytes); });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  std::unique_lock lock(mutex);
  if (stream != nullptr && stream->capture && (is_pageable(from) || is_pageable(to)))
    return spoil(*stream->capture);
  cudaError_t queued = cudaSuccess;
  if (stream != nullptr && is_pageable(from)) {
    const auto* first = static_cast<const std::byte*>(from);
    queued = enqueue(stream, [to, staged = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(to, staged.data(), staged.size());
    });
  } else {
    queued = enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  }
  const bool waits = stream != nullptr && is_pageable(to);
  lock.unlock();
  if (waits) run_all(stream);
  return queued;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  const std::lock_guard lock(mutex);
  *stream = new EmulatedStream;
  cudaGetDevice(&(*stream)->device);
  streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int /*priority*/) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  run_all(stream);
  const std::lock_guard lock(mutex);
  streams.erase(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  {
    const std::lock_guard lock(mutex);
    if (const cudaError_t refused = check_not_captured(stream); refused != cudaSuccess)
      return refused;
  }
  if (stream != nullptr) run_all(stream);
  return cudaSuccess;
}

// Who asks whether a stream is done waits for it: one piece of work is done for each question.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  if (const cudaError_t refused = check_not_captured(stream); refused != cudaSuccess)
    return refused;
  if (stream == nullptr || stream->queue.empty()) return cudaSuccess;
  if (work_hook) work_hook();
  run_first(*stream);
  return cudaErrorNotReady;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  *event = new EmulatedEvent;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  if (stream != nullptr && stream->capture) return spoil(*stream->capture);
  event->point = std::make_shared<Done>(Done{false, {}, stream});
  return enqueue(stream, [point = event->point] {
    point->yes = true;
    point->at = gpu_time();
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  const std::lock_guard lock(mutex);
  if (event->point == nullptr) return cudaSuccess;
  if (stream->capture) return spoil(*stream->capture, cudaErrorStreamCaptureIsolation);
  return enqueue_until(stream, [point = event->point] {
    while (!point->yes)
      if (!run_first(*point->stream)) return false;
    return true;
  });
}

// As cudaStreamQuery().
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(mutex);
  if (event->point == nullptr || event->point->yes) return cudaSuccess;
  run_first(*event->point->stream);
  return cudaErrorNotReady;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  const std::lock_guard lock(mutex);
  if (stream == nullptr || stream->capture) return cudaErrorStreamCaptureUnsupported;
  stream->capture = Capture{std::this_thread::get_id(), {}};
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(mutex);
  *graph = nullptr;
  if (!stream->capture) return cudaErrorStreamCaptureUnmatched;
  if (stream->capture->thread != std::this_thread::get_id())
    return spoil(*stream->capture, cudaErrorStreamCaptureWrongThread);
  Capture capture = std::move(*stream->capture);
  stream->capture.reset();
  if (capture.is_spoilt) return cudaErrorStreamCaptureInvalidated;
  *graph = new EmulatedGraph{std::move(capture.works)};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  *executable = new EmulatedExecutable{std::make_shared<const Works>(graph->works)};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  if (const cudaError_t refused = check_not_captured(stream); refused != cudaSuccess)
    return refused;
  return enqueue(stream, [works = executable->works] {
    for (const std::function<void()>& work : *works) work();
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const std::lock_guard lock(mutex);
  if (!from->point->yes || !to->point->yes) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(to->point->at - from->point->at).count();
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t /*error*/) { return "an error of the emulated GPU"; }
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaError";
}
