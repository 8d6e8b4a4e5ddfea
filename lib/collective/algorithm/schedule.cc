#include "lib/collective/algorithm/schedule.h"

#include <fmt/format.h>

namespace gxp {
namespace {

std::string payload(const CollectiveStep& step, Range range) {
  return step.token ? "a token" : to_string(range);
}

}  // namespace

Schedule record_schedule(const Algorithm& algorithm, const CallShape& shape) {
  Schedule schedule;
  for (int rank = 0; rank < shape.world_size; ++rank) {
    std::vector<CollectiveStep>& steps = schedule.emplace_back();
    for_each_step(algorithm, rank, shape, [&](const auto& step) { steps.push_back(step); });
  }
  return schedule;
}

SentElements count_sent(const Algorithm& algorithm, int rank, const CallShape& shape) {
  SentElements sent;
  for_each_step(algorithm, rank, shape, [&](const CollectiveStep& step) {
    if (step.to == kNobody) return;
    sent.all += step.leaving.count;
    if (shape.host_of(step.to) != shape.host_of(rank)) sent.between_hosts += step.leaving.count;
  });
  return sent;
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
