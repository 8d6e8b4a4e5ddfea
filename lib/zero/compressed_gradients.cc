#include "lib/zero/compressed_gradients.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/collective/communicator.h"

namespace gxp {
namespace {

bool is_compressed(const Op& op) { return op.gradients.residual.buffer != kNoBuffer; }

CompressedShape shape_of(const Op& op) {
  return compressed_shape(
      {.collective = op.collective.scatter ? Collective::kReduceScatter : Collective::kAllReduce,
       .dtype = op.collective.dtype,
       .count = op.collective.count});
}

}  // namespace

CompressedGradients::CompressedGradients(const RunPlan& plan, DeviceCalls& calls, Device& device) {
  const StepProgram& program = plan.step.program;
  if (program.residuals == kNoBuffer) return;
  if (device.space() != MemorySpace::kHost)
    fail(ErrorKind::kUnavailable,
         "comm.codec {}: train compresses gradients on the CPU only; set train.device to \"cpu\", "
         "or "
         "comm.codec to \"none\"",
         program.codec);
  codec_ = find_codec(program.codec);
  size_t most = 0;
  std::set<std::pair<int, int>> seen;  // an operation repeats with each micro-batch
  for (const Op& op : program.ops) {
    if (!is_compressed(op) || !seen.emplace(op.wrap, op.bucket).second) continue;
    if (!groups_) groups_ = split_by_host(calls.members(op.collective.group));
    most = std::max(most, slots_bytes(*codec_, shape_of(op), groups_->place()));
    add_residuals(plan, op, calls.world().rank());
  }
  if (groups_) host_ = groups_->place().host;
  if (most > 0) slots_ = device.allocate(most, MemoryKind::kCommunication);
}

void CompressedGradients::add_residuals(const RunPlan& plan, const Op& op, int rank) {
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

std::function<void()> CompressedGradients::bind(const Op& op, const Tensor& data,
                                                const Tensor& residuals) {
  // Copies of the function share it.
  const auto sum =
      std::make_shared<CompressedSum>(*codec_, shape_of(op), op.collective.dtype, *groups_);
  const Tensor own = residuals.rows(op.gradients.residual.begin, sum->residual_count());
  return [this, sum, data, own] {
    sum->run(data.memory, ReduceOp::kSum,
             {slots_.memory(), reinterpret_cast<float*>(own.memory.data)});
  };
}

}  // namespace gxp
