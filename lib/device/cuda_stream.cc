#include "lib/device/cuda_stream.h"

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "lib/base/bytes.h"
#include "lib/base/log.h"
#include "lib/device/cuda_check.h"
#include "lib/device/cuda_timed_event.h"
#include "lib/device/cuda_wait.h"
#include "lib/device/work_queue.h"

namespace gxp {
namespace {

// CUDA graphs: kernels and copies that were recorded, and are queued again by one call. If the
// kernels are short, launching them dominates the time: some microseconds each.
class CudaGraph {
 public:
  // Records the work that `start` queues, on `stream` alone, with its arguments as they are now;
  // nothing runs. Until it returns this thread may neither wait for the GPU nor allocate or free
  // its memory: kDevice, or an exception of `start`. Source: CUDA C++ Programming Guide, CUDA
  // Graphs, Stream Capture.
  CudaGraph(cudaStream_t stream, const std::function<void()>& start)
      : executable_(nullptr, cudaGraphExecDestroy) {
    // Other threads may do what they like meanwhile: the streams of other lanes are theirs.
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
               "begin to record a CUDA graph");
    std::exception_ptr failure;
    try {
      start();
    } catch (...) {
      failure = std::current_exception();
    }
    cudaGraph_t recorded = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream, &recorded);
    const Owned<cudaGraph_t> graph(recorded, cudaGraphDestroy);
    if (failure) {
      cudaGetLastError();  // of the end, which the failure explains
      std::rethrow_exception(failure);
    }
    check_cuda(ended, "record a CUDA graph");
    cudaGraphExec_t made = nullptr;
    check_cuda(cudaGraphInstantiate(&made, recorded, 0), "make a CUDA graph");
    executable_.reset(made);
  }

  // Queues it. It may be destroyed before it is done.
  void launch(cudaStream_t stream) const {
    check_cuda(cudaGraphLaunch(executable_.get(), stream), "queue a CUDA graph");
  }

 private:
  template <class Handle>
  using Owned = std::unique_ptr<std::remove_pointer_t<Handle>,
                                cudaError_t (*)(std::remove_pointer_t<Handle>*)>;
  Owned<cudaGraphExec_t> executable_;
};

// Names for profilers: NVTX ranges (NVIDIA Tools Extension, header-only version 3, in the CUDA
// toolkit). Without a profiler attached a range is two tests of a pointer.
//
// The work of this thread during the object's lifetime is shown as `name`. Ranges of a thread nest.
class CudaRange {
 public:
  explicit CudaRange(const std::string& name) { nvtxRangePushA(name.c_str()); }
  CudaRange(const CudaRange&) = delete;
  CudaRange& operator=(const CudaRange&) = delete;
  ~CudaRange() { nvtxRangePop(); }
};

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(int index) : index_(index) {
    check_cuda(cudaSetDevice(index), "select the GPU of an event");
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "create an event");
  }
  ~CudaEvent() override {
    cudaSetDevice(index_);
    cudaEventDestroy(event_);
  }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  [[nodiscard]] cudaEvent_t native() const { return event_; }

  QueuePoint recorded;  // after the entry that records it

 private:
  int index_;
  cudaEvent_t event_ = nullptr;
};

// A CUDA stream, made before the thread that queues on it and destroyed after it.
class NativeStream {
 public:
  NativeStream(int index, std::string_view name, StreamPriority priority) {
    const std::string act = fmt::format("create stream '{}'", name);
    check_cuda(cudaSetDevice(index), act);
    int least = 0;
    int greatest = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), act);
    check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                            priority == StreamPriority::kUrgent ? greatest : least),
               act);
  }
  ~NativeStream() { cudaStreamDestroy(stream_); }
  NativeStream(const NativeStream&) = delete;
  NativeStream& operator=(const NativeStream&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

struct CudaRecording final : Recording {
  explicit CudaRecording(uint64_t stream_memory) : memory(stream_memory) {}
  uint64_t memory;                 // the CudaStream's when it was made
  std::optional<CudaGraph> graph;  // from the second time on
};

struct CudaMark final : TimeMark {
  TimedEvent event;
};

class CudaStream final : public Stream {
 public:
  CudaStream(int index, std::string_view name, StreamPriority priority)
      : index_(index),
        name_(name),
        stream_(index, name, priority),
        queue_(
            name, [this] { native(); },
            [](const Work& work) {
              const CudaRange range(work.name);
              work.run();
            }) {}

  cudaStream_t native() const {
    check_cuda(cudaSetDevice(index_), fmt::format("select the GPU of stream '{}'", name_));
    return stream_.get();
  }

  void submit(const Work& work) override { queue_.push({.work = &work}); }

  void record(Event& event) override {
    auto& marker = dynamic_cast<CudaEvent&>(event);
    queue_.push({.act = [this, &marker] {
      check_cuda(cudaEventRecord(marker.native(), stream_.get()),
                 fmt::format("record an event on stream '{}'", name_));
    }});
    marker.recorded = queue_.point();
  }

  // If the other stream records the event anew before this one's thread is here, the later point
  // is waited for: nothing before that can wait for this stream, whose order has not come so far.
  void wait(Event& event) override {
    auto& marker = dynamic_cast<CudaEvent&>(event);
    if (marker.recorded.progress == nullptr) return;
    queue_.wait(marker.recorded);
    queue_.push({.act = [this, &marker] {
      check_cuda(cudaStreamWaitEvent(stream_.get(), marker.native(), 0),
                 fmt::format("let stream '{}' wait for an event", name_));
    }});
  }

  void synchronize(Deadline deadline) override {
    queue_.drain(deadline);
    const cudaError_t state = poll_gpu(deadline, watch_);
    queue_.rethrow();
    check_cuda(state, fmt::format("synchronise stream '{}'", name_));
  }

  [[nodiscard]] std::optional<std::string> settle(Deadline deadline) override {
    try {
      queue_.drain(deadline);
      poll_gpu(deadline, {});
    } catch (const std::exception& error) {
      if (deadline.expired()) return error.what();
    }
    return std::nullopt;
  }

  void set_watch(const std::function<void()>& watch) override { watch_ = watch; }

  void copy(Memory to, ConstMemory from) override {
    GXP_ASSERT(to.bytes == from.bytes);
    if (to.bytes == 0) return;
    check_cuda(cudaMemcpyAsync(to.data, from.data, to.bytes, cudaMemcpyDefault, native()),
               fmt::format("copy {} on stream '{}'", format_bytes(to.bytes), name_));
  }

  void finish(Deadline deadline) override {
    check_cuda(poll_gpu(deadline, watch_), fmt::format("finish what stream '{}' started", name_));
  }

  bool repeat(std::unique_ptr<Recording>& recording, const std::function<void()>& start,
              WithoutRecording otherwise) override {
    auto* const known = dynamic_cast<CudaRecording*>(recording.get());
    if (!records_ || known == nullptr || known->memory != memory_) {
      start();
      recording = records_ ? std::make_unique<CudaRecording>(memory_) : nullptr;
      return false;
    }
    if (known->graph) {
      known->graph->launch(native());
      return true;
    }
    try {
      known->graph.emplace(native(), start);
      known->graph->launch(native());
    } catch (const std::exception& error) {
      if (otherwise == WithoutRecording::kFail) throw;
      start_unrecorded(recording, start, error.what());
    }
    return false;
  }
  void forget_recordings() { ++memory_; }

  void mark(std::unique_ptr<TimeMark>& mark) override {
    const cudaStream_t stream = native();
    if (mark == nullptr) mark = std::make_unique<CudaMark>();
    dynamic_cast<CudaMark&>(*mark).event.record(stream);
  }
  [[nodiscard]] double seconds_between(const TimeMark& first, const TimeMark& last) const override {
    const auto event = [](const TimeMark& mark) -> const TimedEvent& {
      return dynamic_cast<const CudaMark&>(mark).event;
    };
    return event(last).milliseconds_since(event(first)) / 1e3;
  }

 private:
  // What has failed has queued nothing. If its cause is not the recording, `start` meets it again.
  void start_unrecorded(std::unique_ptr<Recording>& recording, const std::function<void()>& start,
                        std::string_view reason) {
    cudaGetLastError();  // or a kernel's launch would be blamed for it
    records_ = false;
    recording.reset();
    log_warn("stream '{}' continues without CUDA graphs: {}", name_, reason);
    start();
  }

  cudaError_t poll_gpu(Deadline deadline, const std::function<void()>& watch) const {
    return wait_for_gpu(native(), deadline, fmt::format("synchronise stream '{}'", name_), watch);
  }

  const int index_;
  const std::string name_;
  const NativeStream stream_;
  uint64_t memory_ = 0;  // counts replacements; of the thread that starts kernels, as the next is
  bool records_ = true;  // until a recording failed
  std::function<void()> watch_;
  WorkQueue queue_;
};

}  // namespace

std::unique_ptr<Stream> make_cuda_stream(int index, std::string_view name,
                                         StreamPriority priority) {
  return std::make_unique<CudaStream>(index, name, priority);
}

std::unique_ptr<Event> make_cuda_event(int index) { return std::make_unique<CudaEvent>(index); }

cudaStream_t native_stream(Stream& stream) { return dynamic_cast<CudaStream&>(stream).native(); }

void forget_recordings(Stream& stream) { dynamic_cast<CudaStream&>(stream).forget_recordings(); }

}  // namespace gxp
