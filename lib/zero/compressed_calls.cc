#include "lib/zero/compressed_calls.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "lib/base/error.h"
#include "lib/collective/communicator.h"
#include "lib/collective/compress/compressed_gather.h"
#include "lib/collective/compress/compressed_sum.h"

namespace gxp {
namespace {

bool is_gather(const Op& op) { return op.kind == OpKind::kGatherParameters; }

CompressedShape shape_of(const Op& op) {
  const Collective sum =
      op.collective.scatter ? Collective::kReduceScatter : Collective::kAllReduce;
  return compressed_shape({.collective = is_gather(op) ? Collective::kAllGather : sum,
                           .dtype = op.collective.dtype,
                           .count = op.collective.count});
}

void check_on_host(std::string_view setting, std::string_view codec, const Device& device) {
  if (codec.empty() || device.space() == MemorySpace::kHost) return;
  fail(ErrorKind::kUnavailable,
       "{} {}: train compresses on the CPU only; set train.device to \"cpu\", or {} to \"none\"",
       setting, codec, setting);
}

}  // namespace

CompressedCalls::CompressedCalls(const RunPlan& plan, DeviceCalls& calls, Device& device) {
  if (plan.shape.world_size == 1) return;
  check_on_host("comm.codec", plan.shape.codec, device);
  check_on_host("comm.gather_codec", plan.shape.gather_codec, device);
  size_t most = 0;
  std::set<std::pair<int, int>> seen;  // sums repeat with each micro-batch
  for (const Op& op : plan.step.program.ops) {
    if (op.collective.codec.empty()) continue;
    if (!groups_) groups_ = split_by_host(calls.members(op.collective.group));
    GXP_ASSERT(groups_->all == &calls.members(op.collective.group));
    const Codec& codec = *find_codec(op.collective.codec);
    most = std::max(most, slots_bytes(codec, shape_of(op), groups_->place()));
    if (!is_gather(op) && seen.emplace(op.wrap, op.bucket).second)
      add_residuals(plan, op, calls.world().rank());
  }
  if (groups_) host_ = groups_->place().host;
  if (most > 0) slots_ = device.allocate(most, MemoryKind::kCommunication);
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
  return [this, sum, data, own] {
    sum->run(data.memory, ReduceOp::kSum,
             {slots_.memory(), reinterpret_cast<float*>(own.memory.data)});
  };
}

std::function<void()> CompressedCalls::bind_gather(const Op& op, const Tensor& whole,
                                                   const Tensor& shard) {
  const CompressedGather gather(*find_codec(op.collective.codec), op.collective.count,
                                op.collective.dtype, *groups_);
  return [this, gather, whole, shard] { gather.run(whole.memory, shard.memory, slots_.memory()); };
}

}  // namespace gxp
