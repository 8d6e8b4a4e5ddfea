#include "lib/device/cpu_stream.h"

#include "lib/device/work_queue.h"

namespace gxp {
namespace {

struct CpuEvent final : Event {
  QueuePoint point;
};

class CpuStream final : public Stream {
 public:
  explicit CpuStream(std::string_view name) : queue_(name) {}

  void submit(const Work& work) override { queue_.push({.work = &work}); }
  void record(Event& event) override { dynamic_cast<CpuEvent&>(event).point = queue_.point(); }
  void wait(Event& event) override { queue_.wait(dynamic_cast<const CpuEvent&>(event).point); }
  void synchronize(Deadline deadline) override {
    queue_.drain(deadline);
    queue_.rethrow();
  }

 private:
  WorkQueue queue_;
};

}  // namespace

std::unique_ptr<Stream> make_cpu_stream(std::string_view name) {
  return std::make_unique<CpuStream>(name);
}

std::unique_ptr<Event> make_cpu_event() { return std::make_unique<CpuEvent>(); }

}  // namespace gxp
