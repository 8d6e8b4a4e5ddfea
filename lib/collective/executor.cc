#include "lib/collective/executor.h"

#include <algorithm>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace gxp {

Executor::Executor(Transport& transport, Device& device, size_t segment_bytes)
    : transport_(transport), device_(device), segment_bytes_(round_up(segment_bytes, 64)) {
  GXP_ASSERT(segment_bytes > 0);
}

void Executor::execute(const Algorithm& algorithm, const Call& call, Memory data,
                       Deadline deadline) {
  GXP_ASSERT(data.bytes == call.count * size_of(call.dtype));
  call_ = call;
  data_ = data;
  tag_ = tag_of(call, algorithm);
  deadline_ = deadline;
  algorithm.run(*this, call.count, call.root);
  finish_all_sends();
}

void Executor::run(const CollectiveStep& step) {
  if (step.token) return exchange_tokens(step.to, step.from);
  if (step.to != kNobody) start_send(step.to, step.leaving);
  if (step.from == kNobody) return;
  finish_sends_of(step.into);
  if (step.fold) {
    receive_and_fold(step.from, step.into);
  } else {
    receive(step.from, step.into);
  }
}

void Executor::start_send(int to, Range leaving) {
  for (size_t i = 0; i < segment_count(leaving); ++i) {
    const Range part = segment(leaving, i);
    sending_.push_back({part, transport_.send(to, tag_, memory_of_range(part))});
  }
}

// Before these elements are overwritten.
void Executor::finish_sends_of(Range range) {
  const auto keeps = [&](const Sending& s) { return !overlap(s.range, range); };
  const auto first = std::partition(sending_.begin(), sending_.end(), keeps);
  for (auto s = first; s != sending_.end(); ++s) transport_.wait(s->ticket, deadline_);
  sending_.erase(first, sending_.end());
}

void Executor::finish_all_sends() {
  for (const Sending& s : sending_) transport_.wait(s.ticket, deadline_);
  sending_.clear();
}

void Executor::receive(int from, Range into) {
  arriving_.clear();
  for (size_t i = 0; i < segment_count(into); ++i) {
    arriving_.push_back(transport_.recv(from, tag_, memory_of_range(segment(into, i))));
  }
  for (const Ticket ticket : arriving_) transport_.wait(ticket, deadline_);
}

void Executor::receive_and_fold(int from, Range into) {
  prepare_scratch();
  const size_t segments = segment_count(into);
  const auto scratch_for = [&](size_t i) {
    return scratch_.memory().slice(i % kScratchSegments * segment_bytes_,
                                   memory_of_range(segment(into, i)).bytes);
  };
  const auto start = [&](size_t i) { return transport_.recv(from, tag_, scratch_for(i)); };
  arriving_.clear();
  for (size_t i = 0; i < std::min(segments, kScratchSegments); ++i) arriving_.push_back(start(i));
  for (size_t i = 0; i < segments; ++i) {
    Ticket& ticket = arriving_[i % kScratchSegments];
    transport_.wait(ticket, deadline_);
    fold(memory_of_range(segment(into, i)), scratch_for(i), call_.dtype, call_.op);
    if (i + kScratchSegments < segments) ticket = start(i + kScratchSegments);
  }
}

void Executor::exchange_tokens(int to, int from) {
  std::byte leaving{1};
  std::byte arriving{0};
  const Ticket sent = transport_.send(to, tag_, {&leaving, 1});
  const Ticket received = transport_.recv(from, tag_, {&arriving, 1});
  transport_.wait(received, deadline_);
  transport_.wait(sent, deadline_);
}

void Executor::prepare_scratch() {
  if (scratch_.memory().data != nullptr) return;
  scratch_ = device_.allocate(kScratchSegments * segment_bytes_, MemoryKind::kCommunication);
}

Memory Executor::memory_of_range(Range range) const {
  const size_t element_bytes = size_of(call_.dtype);
  return data_.slice(range.begin * element_bytes, range.count * element_bytes);
}

size_t Executor::segment_count(Range range) const {
  const size_t elements = segment_bytes_ / size_of(call_.dtype);
  return (range.count + elements - 1) / elements;
}

Range Executor::segment(Range range, size_t index) const {
  const size_t elements = segment_bytes_ / size_of(call_.dtype);
  const size_t begin = index * elements;
  return {range.begin + begin, std::min(elements, range.count - begin)};
}

}  // namespace gxp
