#include "lib/train/timed_ops.h"

#include <numeric>

namespace gxp {

double ClassSeconds::sum() const { return std::accumulate(classes.begin(), classes.end(), waits); }

size_t TimedOps::mark(LaneTimes& lane) {
  if (lane.used == lane.marks.size()) lane.marks.emplace_back();
  lane.stream->mark(lane.marks[lane.used]);
  return lane.used++;
}

double TimedOps::seconds(const LaneTimes& lane, size_t first, size_t last) {
  return lane.stream->seconds_between(*lane.marks[first], *lane.marks[last]);
}

void TimedOps::begin(const Op& op, Stream& stream) {
  LaneTimes& lane = lanes_[size_t(op.lane)];
  lane.stream = &stream;
  lane.ops.push_back({.first = mark(lane), .waits = !op.after.empty()});
  if (op.lane == Lane::kCompute) op_ = &op;
}

void TimedOps::end(const Op& op) {
  if (op.lane == Lane::kCompute) op_ = nullptr;
  LaneTimes& lane = lanes_[size_t(op.lane)];
  lane.ops.back().last = mark(lane);
}

void TimedOps::start(OpsCall call) {
  if (op_ == nullptr) return;
  GXP_ASSERT(!is_open_);
  compute().calls.push_back({mark(compute()), class_of(op_->kind, call)});
  is_open_ = true;
}

void TimedOps::stop() {
  if (!is_open_) return;
  mark(compute());
  is_open_ = false;
}

void TimedOps::linear_backward(const LinearBackward& layer) {
  LinearBackward parts = layer;
  parts.starts = [&](LinearPart part) {
    stop();
    start(call_of(layer, part));
  };
  ops_->linear_backward(parts);
  stop();
}

void TimedOps::apply_all(std::span<const ElementwiseCall> calls) {
  if (calls.empty()) return;
  start(call_of(calls.front()));
  ops_->apply_all(calls);
  stop();
}

void TimedOps::adamw_packed(std::span<const PackedAdamW> calls) {
  start(OpsCall::kPass);
  ops_->adamw_packed(calls);
  stop();
}

ClassSeconds TimedOps::take() {
  ClassSeconds found;
  const LaneTimes& own = compute();
  for (const Span& call : own.calls)
    found.classes[size_t(call.of)] += seconds(own, call.first, call.first + 1);
  for (size_t i = 1; i < own.ops.size(); ++i) {
    if (own.ops[i].waits) found.waits += seconds(own, own.ops[i - 1].last, own.ops[i].first);
  }
  const LaneTimes& comm = lanes_[size_t(Lane::kComm)];
  for (const OpMarks& op : comm.ops) found.collectives += seconds(comm, op.first, op.last);
  for (LaneTimes& lane : lanes_) {
    lane.used = 0;
    lane.calls.clear();
    lane.ops.clear();
  }
  return found;
}

}  // namespace gxp
