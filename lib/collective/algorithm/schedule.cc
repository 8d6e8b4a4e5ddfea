#include "lib/collective/algorithm/schedule.h"

#include <fmt/format.h>

namespace gxp {
namespace {

class ScheduleWriter final : public Primitives {
 public:
  ScheduleWriter(int rank, int world_size, std::vector<CollectiveStep>& steps)
      : rank_(rank), world_size_(world_size), steps_(steps) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int world_size() const override { return world_size_; }

 private:
  void run(const CollectiveStep& step) override { steps_.push_back(step); }

  int rank_;
  int world_size_;
  std::vector<CollectiveStep>& steps_;
};

class SentCounter final : public Primitives {
 public:
  SentCounter(int rank, const CallShape& shape) : rank_(rank), shape_(shape) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int world_size() const override { return shape_.world_size; }
  [[nodiscard]] const SentElements& sent() const { return sent_; }

 private:
  [[nodiscard]] int host_of(int rank) const {
    return shape_.hosts.empty() ? 0 : shape_.hosts[size_t(rank)];
  }
  void run(const CollectiveStep& step) override {
    if (step.to == kNobody) return;
    sent_.all += step.leaving.count;
    if (host_of(step.to) != host_of(rank_)) sent_.between_hosts += step.leaving.count;
  }

  int rank_;
  const CallShape& shape_;
  SentElements sent_;
};

std::string payload(const CollectiveStep& step, Range range) {
  return step.token ? "a token" : to_string(range);
}

}  // namespace

Schedule record_schedule(const Algorithm& algorithm, const CallShape& shape) {
  Schedule schedule(static_cast<size_t>(shape.world_size));
  for (int rank = 0; rank < shape.world_size; ++rank) {
    ScheduleWriter recorder(rank, shape.world_size, schedule[static_cast<size_t>(rank)]);
    algorithm.run(recorder, shape);
  }
  return schedule;
}

SentElements count_sent(const Algorithm& algorithm, int rank, const CallShape& shape) {
  SentCounter counter(rank, shape);
  algorithm.run(counter, shape);
  return counter.sent();
}

uint64_t elements_sent(const Algorithm& algorithm, int rank, const CallShape& shape) {
  if (algorithm.sent != nullptr) return algorithm.sent(rank, shape);
  CallShape whole = shape;
  whole.segment = 0;  // segments cut messages and change no sum
  return count_sent(algorithm, rank, whole).all;
}

std::string to_string(Range range) { return fmt::format("[{}, {})", range.begin, range.end()); }

std::string to_string(const CollectiveStep& step) {
  if (step.local) {
    return fmt::format("{} {} {} {}", step.fold ? "fold" : "copy", payload(step, step.leaving),
                       step.fold ? "into" : "to", payload(step, step.into));
  }
  std::string text;
  if (step.to != kNobody) text = fmt::format("send {} to {}", payload(step, step.leaving), step.to);
  if (step.from == kNobody) return text;
  return fmt::format("{}{}{} {} from {}", text, text.empty() ? "" : ", ",
                     step.fold ? "fold" : "receive", payload(step, step.into), step.from);
}

}  // namespace gxp
