#include "lib/device/cuda_stream.h"

#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

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

 private:
  int index_;
  cudaEvent_t event_ = nullptr;
};

class CudaStream final : public Stream {
 public:
  CudaStream(int index, std::string_view name) : index_(index), name_(name) {
    native();
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
               fmt::format("create stream '{}'", name_));
  }
  ~CudaStream() override {
    cudaSetDevice(index_);
    cudaStreamDestroy(stream_);
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  cudaStream_t native() const {
    check_cuda(cudaSetDevice(index_), fmt::format("select the GPU of stream '{}'", name_));
    return stream_;
  }

  void submit(const Work& work) override {
    if (error_) return;
    try {
      work.run();
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  void record(Event& event) override {
    check_cuda(cudaEventRecord(dynamic_cast<CudaEvent&>(event).native(), native()),
               fmt::format("record an event on stream '{}'", name_));
  }

  void wait(Event& event) override {
    check_cuda(cudaStreamWaitEvent(native(), dynamic_cast<CudaEvent&>(event).native(), 0),
               fmt::format("let stream '{}' wait for an event", name_));
  }

  // Polls, because cudaStreamSynchronize() knows no deadline.
  void synchronize(Deadline deadline) override {
    const std::string act = fmt::format("synchronise stream '{}'", name_);
    const cudaStream_t stream = native();
    cudaError_t state = cudaStreamQuery(stream);
    for (; state == cudaErrorNotReady; state = cudaStreamQuery(stream)) {
      if (deadline.expired()) {
        fail(ErrorKind::kDevice, "{}: its work is not done after {:g} s", act, deadline.seconds());
      }
      std::this_thread::yield();
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    check_cuda(state, act);
  }

 private:
  const int index_;
  const std::string name_;
  cudaStream_t stream_ = nullptr;
  std::exception_ptr error_;
};

}  // namespace

std::unique_ptr<Stream> make_cuda_stream(int index, std::string_view name) {
  return std::make_unique<CudaStream>(index, name);
}

std::unique_ptr<Event> make_cuda_event(int index) { return std::make_unique<CudaEvent>(index); }

cudaStream_t native_stream(Stream& stream) { return dynamic_cast<CudaStream&>(stream).native(); }

}  // namespace gxp
