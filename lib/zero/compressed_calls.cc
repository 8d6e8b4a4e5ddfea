#include "lib/zero/compressed_calls.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/collective/communicator.h"
#include "lib/collective/compress/compressed_gather.h"
#include "lib/collective/compress/compressed_sum.h"

namespace gxp {
namespace {

constexpr size_t kCopyAlignment = 64;

bool is_gather(const Op& op) { return op.kind == OpKind::kGatherParameters; }

CompressedShape shape_of(const Op& op) {
  const Collective sum =
      op.collective.scatter ? Collective::kReduceScatter : Collective::kAllReduce;
  return compressed_shape({.collective = is_gather(op) ? Collective::kAllGather : sum,
                           .dtype = op.collective.dtype,
                           .count = op.collective.count});
}

// Bytes of the copies in pinned memory that a call on a GPU's memory works on.
size_t copied_bytes(const Op& op, const HostPlace& place) {
  const size_t data = op.collective.count * size_of(op.collective.dtype);
  if (is_gather(op)) return data + kCopyAlignment + data / place.ranks();
  return data + kCopyAlignment +
         elements_of_parts(cut_for_hosts(shape_of(op), place)) * sizeof(float);
}

}  // namespace

CompressedCalls::CompressedCalls(const RunPlan& plan, DeviceCalls& calls, Device& device,
                                 Stream& stream) {
  if (plan.shape.world_size == 1) return;
  const bool on_gpu = device.space() != MemorySpace::kHost;
  size_t most = 0, most_copied = 0;
  std::set<std::pair<int, int>> seen;  // sums repeat with each micro-batch
  for (const Op& op : plan.step.program.ops) {
    if (op.collective.codec.empty()) continue;
    if (!groups_) groups_ = split_by_host(calls.members(op.collective.group));
    GXP_ASSERT(groups_->all == &calls.members(op.collective.group));
    const Codec& codec = *find_codec(op.collective.codec);
    most = std::max(most, slots_bytes(codec, shape_of(op), groups_->place()));
    most_copied = std::max(most_copied, copied_bytes(op, groups_->place()));
    if (!is_gather(op) && seen.emplace(op.wrap, op.bucket).second)
      add_residuals(plan, op, calls.world().rank());
  }
  if (groups_) host_ = groups_->place().host;
  if (most > 0)
    slots_ =
        on_gpu ? device.allocate_host(most) : device.allocate(most, MemoryKind::kCommunication);
  if (!on_gpu || most_copied == 0) return;
  stream_ = &stream;
  pinned_ = device.allocate_host(most_copied);
}

// The memory itself, or that of its copy: behind `before`, where that has one.
Memory CompressedCalls::on_host(const Memory& memory, size_t before) const {
  if (stream_ == nullptr) return memory;
  return pinned_.memory().slice(round_up(before, kCopyAlignment), memory.bytes);
}

void CompressedCalls::copy(const Memory& to, const ConstMemory& from) const {
  if (stream_ != nullptr) stream_->copy(to, from);
}

void CompressedCalls::finish_copies() const {
  if (stream_ != nullptr) stream_->finish(Deadline::after(kComputeTimeout));
}

void CompressedCalls::add_residuals(const RunPlan& plan, const Op& op, int rank) {
  const ParameterLayout& layout = plan.layout;
  const RankGroups& groups = plan.step.program.groups;
  size_t begin = op.wrap < 0 ? plan.step.buckets[size_t(op.bucket)].flat.begin
                             : layout.wraps[size_t(op.wrap)].flat.begin;
  if (op.collective.group == RankGroup::kReplicas)
    begin += size_t(groups.shard_of(rank, groups.shard_size)) * op.collective.count;
  size_t at = op.gradients.residual.begin;
  for (const HostPiece& piece : cut_for_hosts(shape_of(op), groups_->place())) {
    for (const Range& part : piece.parts) {
      if (part.count > 0) residuals_.push_back({{begin + part.begin, part.count}, at});
      at += part.count;
    }
  }
}

std::function<void()> CompressedCalls::bind_sum(const Op& op, const Tensor& data,
                                                const Tensor& residuals) {
  // Copies of the function share it.
  const auto sum = std::make_shared<CompressedSum>(*find_codec(op.collective.codec), shape_of(op),
                                                   op.collective.dtype, *groups_);
  const Tensor own = residuals.rows(op.gradients.residual.begin, sum->residual_count());
  return [this, sum, data = data.memory, own = own.memory] {
    const Memory values = on_host(data, 0), kept = on_host(own, data.bytes);
    copy(values, data);
    copy(kept, own);
    finish_copies();
    sum->run(values, ReduceOp::kSum, {slots_.memory(), reinterpret_cast<float*>(kept.data)});
    copy(data, values);
    copy(own, kept);
    finish_copies();
  };
}

std::function<void()> CompressedCalls::bind_gather(const Op& op, const Tensor& whole,
                                                   const Tensor& shard) {
  const CompressedGather gather(*find_codec(op.collective.codec), op.collective.count,
                                op.collective.dtype, *groups_);
  return [this, gather, whole = whole.memory, shard = shard.memory] {
    const Memory values = on_host(whole, 0), part = on_host(shard, whole.bytes);
    copy(part, shard);
    finish_copies();
    gather.run(values, part, slots_.memory());
    copy(whole, values);
    finish_copies();
  };
}

}  // namespace gxp
