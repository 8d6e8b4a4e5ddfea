#include "lib/collective/recorder.h"

#include <fmt/format.h>

namespace gxp {
namespace {

class Recorder final : public Primitives {
 public:
  Recorder(int rank, int world_size, std::vector<CollectiveStep>& steps)
      : rank_(rank), world_size_(world_size), steps_(steps) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int world_size() const override { return world_size_; }

 private:
  void run(const CollectiveStep& step) override { steps_.push_back(step); }

  int rank_;
  int world_size_;
  std::vector<CollectiveStep>& steps_;
};

std::string payload(const CollectiveStep& step, Range range) {
  return step.token ? "a token" : fmt::format("[{}, {})", range.begin, range.end());
}

}  // namespace

Schedule record(const Algorithm& algorithm, int world_size, size_t count, int root) {
  Schedule schedule(static_cast<size_t>(world_size));
  for (int rank = 0; rank < world_size; ++rank) {
    Recorder recorder(rank, world_size, schedule[static_cast<size_t>(rank)]);
    algorithm.run(recorder, count, root);
  }
  return schedule;
}

std::string to_string(const CollectiveStep& step) {
  std::string text;
  if (step.to != kNobody) text = fmt::format("send {} to {}", payload(step, step.leaving), step.to);
  if (step.from == kNobody) return text;
  return fmt::format("{}{}{} {} from {}", text, text.empty() ? "" : ", ",
                     step.fold ? "fold" : "receive", payload(step, step.into), step.from);
}

}  // namespace gxp
