#include "lib/collective/simulate/step_source.h"

#include "lib/base/error.h"

namespace gxp {
namespace {

// Leaves an algorithm's function early.
struct WindowIsFull {};

class WindowRecorder final : public Primitives {
 public:
  WindowRecorder(int rank, int world_size, size_t skip, size_t most,
                 std::vector<CollectiveStep>& steps)
      : rank_(rank), world_size_(world_size), skip_(skip), most_(most), steps_(steps) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int world_size() const override { return world_size_; }

 private:
  void run(const CollectiveStep& step) override {
    if (skip_ > 0) {
      --skip_;
      return;
    }
    if (steps_.size() == most_) throw WindowIsFull{};
    steps_.push_back(step);
  }

  int rank_;
  int world_size_;
  size_t skip_;
  size_t most_;
  std::vector<CollectiveStep>& steps_;
};

}  // namespace

StepSource::StepSource(const Algorithm& algorithm, const CallShape& shape, size_t window)
    : algorithm_(algorithm),
      shape_(shape),
      window_(window),
      ranks_(static_cast<size_t>(shape.world_size)) {
  GXP_ASSERT(window > 0);
}

const CollectiveStep* StepSource::next(int rank) {
  Window& window = ranks_[static_cast<size_t>(rank)];
  if (window.used == window.steps.size() && !window.is_last) {
    record(rank, window.first + window.used);
  }
  return window.used == window.steps.size() ? nullptr : &window.steps[window.used++];
}

void StepSource::record(int rank, size_t first) {
  Window& window = ranks_[static_cast<size_t>(rank)];
  window.steps.clear();
  window.first = first;
  window.used = 0;
  WindowRecorder recorder(rank, shape_.world_size, first, window_, window.steps);
  try {
    algorithm_.run(recorder, shape_);
    window.is_last = true;
  } catch (const WindowIsFull&) {  // the rest comes with the next window
  }
}

}  // namespace gxp
