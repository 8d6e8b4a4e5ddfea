// That the emulated GPU shows the mistakes that it is there to show.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <vector>

#include "lib/device/cuda_device.h"
#include "lib/device/cuda_stream.h"
#include "tests/catch.h"
#include "tests/cuda/emulation/cuda_runtime.h"
#include "tests/cuda/emulation/kernels/cuda/attention/mma.cuh"
#include "tests/cuda/emulation/streams.h"

namespace gxp {
namespace {

using emulation::ThreadOrder;

constexpr unsigned kThreads = 96;
using Values = std::vector<unsigned>;

// What `kernel` stores, a value a thread, with its threads run in `order`.
template <class Kernel>
Values run(ThreadOrder order, Kernel* kernel) {
  emulation::set_thread_order(order);
  Values out(kThreads);
  const cudaLaunchConfig_t config = {dim3(1), dim3(kThreads), 0, nullptr, nullptr, 0};
  const cudaError_t result = cudaLaunchKernelEx(&config, kernel, out.data());
  emulation::set_thread_order(ThreadOrder::kUp);
  CHECK(result == cudaSuccess);
  return out;
}

// Each thread reads what another has written.
template <bool kWaits>
__global__ void reverse(unsigned* out) {
  __shared__ unsigned shared[kThreads];
  shared[threadIdx.x] = 0;
  __syncthreads();
  shared[threadIdx.x] = threadIdx.x + 1;
  if constexpr (kWaits) __syncthreads();
  out[threadIdx.x] = shared[kThreads - 1 - threadIdx.x];
}

// Each warp reads, twice, what all have written; some may be ahead by then.
template <bool kWaits>
__global__ void read_twice(unsigned* out) {
  __shared__ unsigned shared[kThreads / 32];
  out[threadIdx.x] = 0;
  for (unsigned round = 1; round <= 2; ++round) {
    shared[threadIdx.x / 32] = round;
    __syncthreads();
    for (unsigned warp = 0; warp < kThreads / 32; ++warp) out[threadIdx.x] += shared[warp];
    if constexpr (kWaits) __syncthreads();
  }
}

template <class Expected>
Values for_threads(const Expected& expected) {
  Values all;
  for (unsigned i = 0; i < kThreads; ++i) all.push_back(expected(i / 32, i % 32));
  return all;
}

__global__ void shuffle_up(unsigned* out) {
  out[threadIdx.x] = __shfl_up_sync(~0u, threadIdx.x, 3u);
}
__global__ void shuffle_down(unsigned* out) {
  out[threadIdx.x] = __shfl_down_sync(~0u, threadIdx.x, 3u);
}
__global__ void shuffle_across(unsigned* out) {
  const unsigned once = __shfl_xor_sync(~0u, threadIdx.x, 5);
  out[threadIdx.x] = __shfl_sync(~0u, once, 7);
}
// Half of the lanes vote by themselves.
__global__ void vote(unsigned* out) {
  const bool is_low = threadIdx.x % 32 < 16;
  out[threadIdx.x] = __ballot_sync(is_low ? 0xffffu : 0xffff0000u, threadIdx.x % 3 == 0);
}
unsigned votes(unsigned warp, unsigned lane) {
  unsigned bits = 0;
  for (unsigned i = lane / 16 * 16; i < lane / 16 * 16 + 16; ++i)
    bits |= unsigned((warp * 32 + i) % 3 == 0) << i;
  return bits;
}

__global__ void wait_for_a_lane_that_left(unsigned* out) {
  if (threadIdx.x == 5) return;
  out[threadIdx.x] = __shfl_sync(~0u, threadIdx.x, 0);
}

// A copy of a word that is only there when it has been waited for.
template <bool kWaits>
__global__ void copy_word(unsigned* out) {
  alignas(16) __shared__ unsigned words[kThreads];
  words[threadIdx.x] = 1;
  out[threadIdx.x] = 2;
  start_copy<4>(shared_address(words + threadIdx.x), out + threadIdx.x, true);
  if constexpr (kWaits) finish_copies();
  out[threadIdx.x] = words[threadIdx.x];
  finish_copies();
}
__global__ void copy_from_between_words(unsigned* out) {
  __shared__ unsigned word;
  start_copy<4>(shared_address(&word), reinterpret_cast<std::byte*>(out) + 2, true);
  finish_copies();
}

__global__ void store_one(unsigned* out) { *out = 1; }

// A value in memory that copies do not wait for, and two streams.
class Queues {
 public:
  Queues() {
    cudaHostAlloc(reinterpret_cast<void**>(&value_), 2 * sizeof(unsigned), cudaHostAllocDefault);
    value_[0] = value_[1] = 0;
    for (cudaStream_t* stream : {&first, &second}) cudaStreamCreateWithFlags(stream, 0);
    cudaEventCreateWithFlags(&stored, cudaEventDisableTiming);
  }
  ~Queues() {
    for (cudaStream_t stream : {first, second}) cudaStreamDestroy(stream);
    cudaEventDestroy(stored);
    cudaFreeHost(value_);
  }
  Queues(const Queues&) = delete;
  void store() const {
    const cudaLaunchConfig_t config = {dim3(1), dim3(1), 0, first, nullptr, 0};
    cudaLaunchKernelEx(&config, store_one, value_);
    cudaEventRecord(stored, first);
  }
  void copy() const {
    cudaMemcpyAsync(value_ + 1, value_, sizeof *value_, cudaMemcpyDefault, second);
  }
  [[nodiscard]] unsigned value() const { return value_[0]; }
  [[nodiscard]] unsigned copied() const { return value_[1]; }
  cudaStream_t first{}, second{};
  cudaEvent_t stored{};

 private:
  unsigned* value_ = nullptr;
};

TEST_CASE("a missing barrier shows in one of the two orders of threads", "[emulation]") {
  const Values expected = for_threads([](unsigned w, unsigned l) { return kThreads - w * 32 - l; });
  CHECK(run(ThreadOrder::kUp, reverse<true>) == expected);
  CHECK(run(ThreadOrder::kDown, reverse<true>) == expected);
  CHECK(run(ThreadOrder::kUp, reverse<false>) != run(ThreadOrder::kDown, reverse<false>));
}

TEST_CASE("a barrier that is missing before a value is replaced shows", "[emulation]") {
  const auto order = GENERATE(ThreadOrder::kUp, ThreadOrder::kDown);
  const Values expected = for_threads([](unsigned, unsigned) { return kThreads / 32 * (1 + 2); });
  CHECK(run(order, read_twice<true>) == expected);
  CHECK(run(order, read_twice<false>) != expected);
}

TEST_CASE("shuffles and votes give what CUDA's do", "[emulation]") {
  const auto order = GENERATE(ThreadOrder::kUp, ThreadOrder::kDown);
  const auto lane_of = [](unsigned warp, unsigned lane) { return warp * 32 + lane; };
  CHECK(run(order, shuffle_up) ==
        for_threads([&](unsigned w, unsigned l) { return lane_of(w, l < 3 ? l : l - 3); }));
  CHECK(run(order, shuffle_down) ==
        for_threads([&](unsigned w, unsigned l) { return lane_of(w, l + 3 < 32 ? l + 3 : l); }));
  CHECK(run(order, shuffle_across) ==
        for_threads([&](unsigned w, unsigned) { return lane_of(w, 7 ^ 5); }));
  CHECK(run(order, vote) == for_threads(votes));
}

TEST_CASE("a copy to shared memory that is not waited for is not there", "[emulation]") {
  CHECK(run(ThreadOrder::kUp, copy_word<true>) == Values(kThreads, 2));
  CHECK(run(ThreadOrder::kUp, copy_word<false>) == Values(kThreads, 1));
}

TEST_CASE("a kernel has the shared memory that it asked for", "[emulation]") {
  cudaLaunchConfig_t config = {dim3(1), dim3(1), 48 * 1024, nullptr, nullptr, 0};
  unsigned out = 0;
  CHECK(cudaLaunchKernelEx(&config, store_one, &out) == cudaSuccess);
  config.dynamicSmemBytes += 1;
  CHECK(cudaLaunchKernelEx(&config, store_one, &out) == cudaErrorInvalidValue);
  const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  CHECK(cudaFuncSetAttribute(store_one, attribute, 228 * 1024) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(store_one, attribute, 49 * 1024) == cudaSuccess);
  CHECK(cudaLaunchKernelEx(&config, store_one, &out) == cudaSuccess);
}

TEST_CASE("a host that does not wait for a stream reads what was there before", "[emulation]") {
  const Queues queues;
  queues.store();
  CHECK(queues.value() == 0);
  cudaStreamSynchronize(queues.first);
  CHECK(queues.value() == 1);
}

TEST_CASE("a stream that does not wait for another's event reads what was there before",
          "[emulation]") {
  const bool waits = GENERATE(false, true);
  const Queues queues;
  queues.store();
  if (waits) cudaStreamWaitEvent(queues.second, queues.stored, 0);
  queues.copy();
  cudaStreamSynchronize(queues.second);
  CHECK(queues.copied() == (waits ? 1 : 0));
}

// A kernel that keeps its argument by value.
__global__ void store_value(unsigned* out, unsigned value) { *out = value; }

TEST_CASE("a graph has the arguments that its capture was given", "[emulation]") {
  const Queues queues;
  unsigned* out = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&out), sizeof *out);
  unsigned value = 7;
  cudaStreamBeginCapture(queues.first, cudaStreamCaptureModeThreadLocal);
  const cudaLaunchConfig_t config = {dim3(1), dim3(1), 0, queues.first, nullptr, 0};
  CHECK(cudaLaunchKernelEx(&config, store_value, out, value) == cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  REQUIRE(cudaStreamEndCapture(queues.first, &graph) == cudaSuccess);
  CHECK(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  value = 8;
  for (int launch = 0; launch < 2; ++launch) {
    *out = 0;
    CHECK(cudaGraphLaunch(executable, queues.second) == cudaSuccess);
    CHECK(*out == 0);
    cudaStreamSynchronize(queues.second);
    CHECK(*out == 7);
  }
  cudaGraphDestroy(graph);
  cudaGraphExecDestroy(executable);
  cudaFree(out);
}

TEST_CASE("what a capture does not allow is refused and spoils it", "[emulation]") {
  const Queues queues;
  queues.store();
  unsigned pageable = 0;
  void* memory = nullptr;
  const std::vector<std::function<cudaError_t()>> acts = {
      [&] { return cudaStreamSynchronize(queues.first); },
      [&] { return cudaStreamSynchronize(queues.second); },
      [&] { return cudaStreamQuery(queues.first); },
      [&] { return cudaMalloc(&memory, 4); },
      [&] { return cudaFree(nullptr); },
      [&] { return cudaMemset(&pageable, 0, sizeof pageable); },
      [&] { return cudaStreamWaitEvent(queues.first, queues.stored, 0); },
      [&] {
        return cudaMemcpyAsync(&pageable, &pageable, sizeof pageable, cudaMemcpyDefault,
                               queues.first);
      },
      [&] {
        return std::async(std::launch::async,
                          [&] { return cudaMemsetAsync(memory, 0, 0, queues.first); })
            .get();
      }};
  const auto i = GENERATE(range(size_t{0}, size_t{9}));
  REQUIRE(acts.size() == 9);
  CAPTURE(i);
  cudaStreamBeginCapture(queues.first, cudaStreamCaptureModeThreadLocal);
  CHECK(acts[i]() != cudaSuccess);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(queues.first, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
  CHECK(cudaStreamSynchronize(queues.first) == cudaSuccess);
  CHECK(queues.value() == 1);
}

TEST_CASE("other threads go on as they like during a capture", "[emulation]") {
  const Queues queues;
  cudaStreamBeginCapture(queues.first, cudaStreamCaptureModeThreadLocal);
  const auto others = [&] {
    void* memory = nullptr;
    const bool allocates = cudaMalloc(&memory, 4) == cudaSuccess;
    return allocates && cudaFree(memory) == cudaSuccess &&
           cudaStreamSynchronize(queues.second) == cudaSuccess;
  };
  CHECK(std::async(std::launch::async, others).get());
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(queues.first, &graph) == cudaSuccess);
  cudaGraphDestroy(graph);
}

TEST_CASE("lanes that wait for one that has left, and unaligned copies, end the process",
          "[emulation]") {
  const auto kernel = GENERATE(&wait_for_a_lane_that_left, &copy_from_between_words);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    close(STDERR_FILENO);
    run(ThreadOrder::kUp, kernel);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
}

TEST_CASE("a long wait for the GPU does not keep a core busy", "[emulation]") {
  using Clock = std::chrono::steady_clock;
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream("compute");
  const auto done = Clock::now() + std::chrono::milliseconds(100);
  int asked = 0;
  const auto attempt = [&] { return ++asked, Clock::now() >= done; };
  REQUIRE(emulation::enqueue_until(native_stream(*stream), attempt) == cudaSuccess);
  stream->finish(Deadline::after(std::chrono::seconds(30)));
  CHECK(asked < 5000);  // without a pause, some 100,000
}

TEST_CASE("a GPU that is too old is refused with what serves", "[emulation]") {
  set_emulated_capability(7, 5);
  CHECK_THROWS_WITH(make_cuda_device(0),
                    Catch::Contains("has compute capability 7.5, gxp's kernels need 8.0") &&
                        Catch::Contains("CUDA_VISIBLE_DEVICES"));
  set_emulated_capability(8, 0);
  CHECK_NOTHROW(make_cuda_device(0));
  set_emulated_capability(9, 0);
}

}  // namespace
}  // namespace gxp
