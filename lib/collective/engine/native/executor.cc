#include "lib/collective/engine/native/executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr size_t kNotCut = size_t{1} << 62;
constexpr MemoryKind kScratch = MemoryKind::kCommunication;

void fold_arrived(const void* context, std::byte* target, const std::byte* arrived, size_t bytes) {
  const Call& call = *static_cast<const Call*>(context);
  fold({target, bytes, MemorySpace::kHost}, {arrived, bytes, MemorySpace::kHost}, call.dtype,
       call.op);
}

void copy_unless_same(Memory into, ConstMemory from) {
  if (into.data != from.data && into.bytes > 0) std::memcpy(into.data, from.data, into.bytes);
}

}  // namespace

Executor::Executor(Transport& transport, Device& device, FlightRecorder& recorder,
                   std::vector<int> members, int rank)
    : transport_(transport),
      device_(device),
      recorder_(recorder),
      members_(std::move(members)),
      rank_(rank) {}

void Executor::execute(const Work& work) {
  call_ = work.call;
  tag_ = work.tag;
  step_ = -1;
  segment_bytes_ = work.segment_bytes == 0 ? kNotCut : round_up(work.segment_bytes, 64);
  deadline_ = work.deadline;
  place(work);
  transport_.on_unexpected([this](int peer, Tag tag) { check_unexpected(peer, tag); });
  work.algorithm->run(*this, work.shape);
  finish_all_sends();
  give_result(work);
}

// The algorithm works on the output if that is the whole logical buffer, else on memory of ours.
void Executor::place(const Work& work) {
  const size_t element_bytes = size_of(call_.dtype);
  const Extents extents = extents_of(call_, rank_, world_size());
  if (extents.output == Range{0, call_.count}) {
    data_ = work.output;
  } else if (extents.input == Range{0, call_.count} &&
             work.output.data == work.input.data + extents.output.begin * element_bytes) {
    // In place: the caller's buffer is whole, and its memory is writable.
    data_ = {const_cast<std::byte*>(work.input.data), work.input.bytes, MemorySpace::kHost};
  } else {
    data_ = grow(work_, call_.count * element_bytes, device_, kScratch);
  }
  const auto scratch = work.algorithm->scratch;
  beyond_ = scratch == nullptr
                ? Memory{}
                : grow(scratch_, scratch(rank_, work.shape) * element_bytes, device_, kScratch);
  const Memory own = memory_of_range(extents.input);
  copy_unless_same(own, work.input);
  if (call_.op == ReduceOp::kPreMulSum && reduces(call_.collective)) {
    scale(own, call_.dtype, call_.factor);
  }
}

void Executor::give_result(const Work& work) {
  const Memory result = memory_of_range(extents_of(call_, rank_, world_size()).output);
  if (call_.op == ReduceOp::kAvg && reduces(call_.collective)) {
    scale(result, call_.dtype, 1.0 / world_size());
  }
  copy_unless_same(work.output, result);
}

void Executor::run(const CollectiveStep& step) {
  ++step_;
  if (step.local) return run_locally(step);
  if (step.token) return exchange_tokens(step.to, step.from);
  if (step.to != kNobody) start_send(step.to, step.leaving);
  if (step.from == kNobody) return;
  finish_sends_of(step.into);
  receive(step.from, step.into, step.fold);
}

void Executor::run_locally(const CollectiveStep& step) {
  finish_sends_of(step.into);
  const Memory into = memory_of_range(step.into);
  const ConstMemory from = memory_of_range(step.leaving);
  if (step.fold) {
    gxp::fold(into, from, call_.dtype, call_.op);
  } else if (into.bytes > 0) {
    std::memmove(into.data, from.data, into.bytes);
  }
}

void Executor::start_send(int to, Range leaving) {
  for (size_t i = 0; i < segment_count(leaving); ++i) {
    const Range part = segment(leaving, i);
    sending_.push_back({to, part, transport_.send(peer(to), tag_, memory_of_range(part))});
  }
}

// Before these elements are overwritten.
void Executor::finish_sends_of(Range range) {
  const auto keeps = [&](const Sending& s) { return !overlap(s.range, range); };
  const auto first = std::partition(sending_.begin(), sending_.end(), keeps);
  for (auto s = first; s != sending_.end(); ++s) wait(s->ticket, s->to);
  sending_.erase(first, sending_.end());
}

void Executor::finish_all_sends() {
  for (const Sending& s : sending_) wait(s.ticket, s.to);
  sending_.clear();
}

void Executor::receive(int from, Range into, bool fold) {
  const Combiner combiner{fold_arrived, &call_, size_of(call_.dtype)};
  arriving_.clear();
  for (size_t i = 0; i < segment_count(into); ++i) {
    const Memory target = memory_of_range(segment(into, i));
    arriving_.push_back(fold ? transport_.recv_and_combine(peer(from), tag_, target, combiner)
                             : transport_.recv(peer(from), tag_, target));
  }
  for (const Ticket ticket : arriving_) wait(ticket, from);
}

void Executor::exchange_tokens(int to, int from) {
  std::byte leaving{1};
  std::byte arriving{0};
  Ticket sent;
  Ticket received;
  if (to != kNobody) sent = transport_.send(peer(to), tag_, {&leaving, 1});
  if (from != kNobody) received = transport_.recv(peer(from), tag_, {&arriving, 1});
  if (from != kNobody) wait(received, from);
  if (to != kNobody) wait(sent, to);
}

void Executor::wait(Ticket ticket, int rank) {
  recorder_.step(step_, peer(rank));
  transport_.wait(ticket, deadline_);
}

// A message of this group's same call number that does not belong to this call.
void Executor::check_unexpected(int peer, Tag tag) const {
  if (!same_call_number(tag, tag_) || tag == tag_) return;
  fail(ErrorKind::kPeer, "rank {} made a different call where rank {} called {}", peer,
       transport_.rank(), to_string(call_));
}

Memory Executor::memory_of_range(Range range) const {
  if (range.count == 0) return {};  // may begin anywhere
  const size_t element_bytes = size_of(call_.dtype);
  const bool behind = range.begin >= call_.count;
  const size_t begin = behind ? range.begin - call_.count : range.begin;
  return (behind ? beyond_ : data_).slice(begin * element_bytes, range.count * element_bytes);
}

size_t Executor::segment_count(Range range) const {
  const size_t elements = segment_bytes_ / size_of(call_.dtype);
  return range.count / elements + (range.count % elements != 0 ? 1 : 0);
}

Range Executor::segment(Range range, size_t index) const {
  const size_t elements = segment_bytes_ / size_of(call_.dtype);
  const size_t begin = index * elements;
  return {range.begin + begin, std::min(elements, range.count - begin)};
}

}  // namespace gxp
