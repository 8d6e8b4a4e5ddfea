// What gxp calls of CUDA's runtime, with NVIDIA's names and meanings, for a GPU that is emulated on
// the CPU: so the sources of the CUDA backend are compiled and run, unchanged, where there is no
// GPU. Found in place of NVIDIA's header by the include path of the emulated tests alone.
//
//   Memory   of the device is the host's; an address sanitizer watches it.
//   Streams  are queues. What they hold runs as late as CUDA allows: when somebody waits for it. So
//            host code that forgets to wait reads what was there before.
//   Copies   between the device and memory that is not pinned end before the call returns, or have
//            read their source by then, as the runtime's do.
//   Graphs   keep what a stream is given while it is captured, arguments included. What a capture
//            does not allow spoils it, as CUDA's does: to wait for the GPU, to take or give back
//            memory, to copy from or to pageable memory. So does what CUDA allows and gxp has no
//            use for: events, and other threads that queue on the stream.
//   Threads  any number; one kernel runs at a time.
//   GPUs     one at first, number 0 of its host, or those whose numbers CUDA_VISIBLE_DEVICES lists
//            (set_emulated_gpus()). All have one memory; those of other processes have theirs, which
//            is shared by descriptors (cuda.h).
#pragma once

#include <cstddef>

#define CUDART_VERSION 13000

struct EmulatedStream;
struct EmulatedEvent;
struct EmulatedGraph;
struct EmulatedExecutable;
using cudaStream_t = EmulatedStream*;  // null: the default stream, which ends before it returns
using cudaEvent_t = EmulatedEvent*;
using cudaGraph_t = EmulatedGraph*;
using cudaGraphExec_t = EmulatedExecutable*;

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoDevice = 100,
  cudaErrorNotReady = 600,
  cudaErrorLaunchFailure = 719,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureUnmatched = 903,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorStreamCaptureWrongThread = 908,
};

enum cudaMemcpyKind { cudaMemcpyDeviceToDevice = 3, cudaMemcpyDefault = 4 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

inline constexpr unsigned cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDisableTiming = 2;
inline constexpr unsigned cudaHostAllocDefault = 0;

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  int major, minor;
  int multiProcessorCount;
};

// What cudaGetDeviceProperties says from now on; 9.0 at first.
void set_emulated_capability(int major, int minor);

// The multiprocessors of each from now on; 132 at first, an H100's.
void set_emulated_multiprocessors(int count);

// The number on its host of the GPU that this process sees as `device`.
int emulated_gpu_on_host(int device);
// How many there are from now on, numbered from 0 on their host, and whether they have peer access to each other.
void set_emulated_gpus(int count, bool peer_access);
// The same while this lives; then one, as at first.
struct EmulatedGpus {
  explicit EmulatedGpus(int count, bool peer_access = true) {
    set_emulated_gpus(count, peer_access);
  }
  EmulatedGpus(const EmulatedGpus&) = delete;
  EmulatedGpus& operator=(const EmulatedGpus&) = delete;
  ~EmulatedGpus() { set_emulated_gpus(1, true); }
};

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);

cudaError_t cudaMalloc(void** memory, size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemset(void* memory, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);

// Both recorded, without cudaEventDisableTiming, and done.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to);

enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess = 0,
  cudaDriverEntryPointSymbolNotFound = 1,
};
inline constexpr unsigned long long cudaEnableDefault = 0;
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* state);

cudaError_t cudaGetLastError();
const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);
