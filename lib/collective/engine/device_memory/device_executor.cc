#include "lib/collective/engine/device_memory/device_executor.h"

#include <new>
#include <span>
#include <utility>

namespace gxp {
namespace {

using enum Collective;

constexpr size_t kTileBytes = DevicePeers::kScratchBytes / 4;
constexpr size_t kLeastTileBytes = size_t{1} << 20;  // a phase takes as long as some 4 MiB
static_assert(TiledMethod::staging_bytes(kTileBytes) <= DevicePeers::kScratchBytes);
static_assert(DeviceExecutor::kOneShotBytes <= DevicePeers::kScratchBytes);

constexpr AllocationOffset kNotUsed{~uint64_t{0}, 0};  // of a buffer that the call does not use

class BarrierCall final : public QueuedCall {
 public:
  BarrierCall(std::shared_ptr<GroupBarriers> barriers, uint32_t entered, uint32_t left)
      : barriers_(std::move(barriers)), entered_(entered), left_(left) {}
  Progress look() override {
    if (barriers_->has_passed(left_)) return Progress::kDone;
    barriers_->check();
    return barriers_->has_passed(entered_) ? Progress::kRuns : Progress::kWaits;
  }

 private:
  std::shared_ptr<GroupBarriers> barriers_;
  uint32_t entered_;
  uint32_t left_;
};

// Whether one rank can do another's part: nothing but the range differs.
bool folds_for_others(Collective collective) {
  return collective == kAllReduce || collective == kReduce;
}

// Whether peers write a rank's output.
bool writes_outputs(Collective collective) {
  return collective != kAllGather && collective != kReduceScatter && collective != kScatter;
}

}  // namespace

void DeviceMover::fetch(bool /*mapped*/, int /*rank*/, const std::byte* there, std::byte* here,
                        size_t bytes) {
  copy(here, there, bytes);
}

void DeviceMover::store(bool /*mapped*/, int /*rank*/, std::byte* there, const std::byte* here,
                        size_t bytes) {
  copy(there, here, bytes);
}

void DeviceMover::copy(std::byte* to, const std::byte* from, size_t bytes) {
  stream_->copy({to, bytes, MemorySpace::kCuda}, {from, bytes, MemorySpace::kCuda});
}

void DeviceMover::copy_input(const Invocation& inv, std::byte* to, Range range) {
  const std::byte* const from = inv.input(range);
  if (!inv.is_scaled()) return copy(to, from, range.count);
  peers_->folds().fold_all(*stream_, std::span(&to, 1), std::span(&from, 1), range.count,
                           inv.call.dtype, inv.call.op,
                           {.factor = inv.call.factor, .blocks = blocks_});
}

void DeviceMover::run_fold(const Call& call, size_t bytes, bool /*by_copies*/) {
  FoldOptions options{.blocks = blocks_};
  if (call.op == ReduceOp::kAvg) options.factor = 1.0 / double(fold.sources.size());
  peers_->folds().fold_all(*stream_, fold.targets, fold.sources, bytes, call.dtype, call.op,
                           options);
}

DeviceExecutor::DeviceExecutor(GroupSync& sync) : sync_(sync) {
  for (int rank = 0; rank < sync.world_size(); ++rank) members_.push_back(sync.member(rank));
  tiled_.use_tiles_of(kTileBytes, kLeastTileBytes);
}

const SharedCall& DeviceExecutor::find(const Call& call) {
  for (const auto& known : known_) {
    if (known && same_signature(known->call, call)) return *known;
  }
  return known_[next_known_++ % known_.size()].emplace(call, sync_.world_size());
}

Invocation DeviceExecutor::begin(const Call& call, ConstMemory input, Memory output,
                                 Deadline deadline) {
  const SharedCall& shape = find(call);
  const uint32_t index = sync_.begin();
  return {.call = call,
          .shape = shape,
          .rank = sync_.rank(),
          .index = index,
          .stamp = shape.stamp(call.sequence, index, MemorySpace::kCuda),
          .input_data = input.data,
          .output_data = output.data,
          .deadline = deadline,
          .space = MemorySpace::kCuda};
}

void DeviceExecutor::execute(DevicePeers& peers, const Call& call, ConstMemory input, Memory output,
                             Deadline deadline) {
  const Invocation inv = begin(call, input, output, deadline);
  const std::vector<int> sharers = ranks_of_device(peers);
  const bool is_shared = sharers.size() > 1;
  mover_.use(peers, peers.stream(), is_shared ? DeviceFolds::kWideBlocks : DeviceFolds::kBlocks);
  const std::optional<RankBuffers> buffers = exchange(peers, inv);
  if (inv.bytes() == 0) {
    // All have entered, which is all there is to it.
  } else if (buffers && is_shared && folds_for_others(call.collective)) {
    if (sharers.front() == inv.rank) {
      fold_for(sharers, inv, *buffers);
      mover_.finish(inv);
    }
    sync_.synchronise(inv);
  } else if (buffers && DirectMethod::can_run(inv, *buffers)) {
    direct_.move(inv, *buffers);
    mover_.finish(inv);
    sync_.synchronise(inv);
  } else if (inv.shape.largest_input <= kOneShotBytes) {
    run_one_shot(inv);
  } else {
    tiled_.run(inv);
    // Calls of other groups use the same scratch memory.
    sync_.synchronise(inv);
  }
  sync_.end(inv);
}

DeviceExecutor::Placement DeviceExecutor::place(const DevicePeers& peers,
                                                const Invocation& inv) const {
  const auto place_of = [&](const std::byte* data, Range range) {
    return range.count == 0 ? kNotUsed : peers.place_of(data, range.count);
  };
  return {.input = inv.is_scaled() ? AllocationOffset{} : place_of(inv.input_data, inv.own_input()),
          .output = place_of(inv.output_data, inv.own_output())};
}

const DeviceExecutor::Placement& DeviceExecutor::placement_of(const Invocation& inv,
                                                              int rank) const {
  return *reinterpret_cast<const Placement*>(sync_.line(rank, inv.index).payload);
}

std::optional<RankBuffers> DeviceExecutor::exchange(DevicePeers& peers, const Invocation& inv) {
  const Placement mine = place(peers, inv);
  for (const AllocationOffset& place : {mine.input, mine.output}) {
    if (mine.everywhere() && place.allocation != kNotUsed.allocation)
      peers.offer(place.allocation, members_, inv.deadline);
  }
  sync_.wait_for_line(inv);
  new (sync_.line(inv.rank, inv.index).payload) Placement(mine);
  sync_.publish_line(inv);
  bool everywhere = true;
  for (int rank = 0; rank < sync_.world_size(); ++rank) {
    if (rank != inv.rank) sync_.await(inv, rank);
    const Placement& theirs = placement_of(inv, rank);
    everywhere = everywhere && theirs.everywhere();
    if (rank != inv.rank && theirs.everywhere()) learn(peers, inv, rank, theirs);
  }
  return everywhere ? std::optional(resolve(peers, inv)) : std::nullopt;
}

void DeviceExecutor::learn(DevicePeers& peers, const Invocation& inv, int rank,
                           const Placement& theirs) const {
  for (const AllocationOffset& place : {theirs.input, theirs.output}) {
    if (place.allocation != kNotUsed.allocation)
      peers.learn(sync_.member(rank), place.allocation, inv.deadline);
  }
}

RankBuffers DeviceExecutor::resolve(const DevicePeers& peers, const Invocation& inv) const {
  RankBuffers buffers;
  const bool written = writes_outputs(inv.call.collective);
  for (int rank = 0; rank < sync_.world_size(); ++rank) {
    const auto at = [&](const AllocationOffset& place, Range range, std::byte* own) -> std::byte* {
      if (range.count == 0) return nullptr;
      return rank == inv.rank ? own : peers.at(sync_.member(rank), place, range.count);
    };
    const Placement& there = placement_of(inv, rank);
    buffers.inputs.push_back(
        at(there.input, inv.shape.inputs[size_t(rank)], const_cast<std::byte*>(inv.input_data)));
    buffers.outputs.push_back(
        written ? at(there.output, inv.shape.outputs[size_t(rank)], inv.output_data) : nullptr);
  }
  return buffers;
}

std::vector<int> DeviceExecutor::ranks_of_device(const DevicePeers& peers) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < sync_.world_size(); ++rank) {
    if (peers.share_device(sync_.member(rank), sync_.member(sync_.rank()))) ranks.push_back(rank);
  }
  return ranks;
}

// Shares of neighbours are one range, and one kernel.
void DeviceExecutor::fold_for(const std::vector<int>& ranks, const Invocation& inv,
                              const RankBuffers& buffers) {
  Range range;
  for (const int rank : ranks) {
    const Range share = inv.shape.shares[size_t(rank)];
    if (share.begin != range.end()) {
      direct_.move_range(inv, buffers, range);
      range = {share.begin, 0};
    }
    range.count += share.count;
  }
  direct_.move_range(inv, buffers, range);
}

void DeviceExecutor::run_one_shot(const Invocation& inv) {
  give_copy(inv);
  mover_.finish(inv);
  sync_.synchronise(inv);
  take_copies(inv);
  mover_.finish(inv);
  sync_.synchronise(inv);
}

void DeviceExecutor::give_copy(const Invocation& inv) {
  if (inv.own_input().count > 0) mover_.copy_input(inv, mover_.staging(inv.rank), inv.own_input());
}

void DeviceExecutor::take_copies(const Invocation& inv) {
  RankBuffers copies;
  for (int rank = 0; rank < sync_.world_size(); ++rank)
    copies.inputs.push_back(mover_.staging(rank));
  mover_.take(inv, copies);
}

std::unique_ptr<QueuedCall> DeviceExecutor::enqueue(DevicePeers& peers, const Call& call,
                                                    ConstMemory input, Memory output,
                                                    Stream& stream, Deadline deadline) {
  if (met_peers_ != peers.number()) {
    barriers_ = std::make_shared<GroupBarriers>(peers, sync_);
    met_peers_ = peers.number();
  }
  const Invocation inv = begin(call, input, output, deadline);
  mover_.use(peers, stream, DeviceFolds::kBlocks);
  auto queued = queue(inv, exchange(peers, inv), stream);
  sync_.end(inv);
  return queued;
}

std::unique_ptr<QueuedCall> DeviceExecutor::queue(const Invocation& inv,
                                                  const std::optional<RankBuffers>& buffers,
                                                  Stream& stream) {
  const auto barrier = [&] { return barriers_->queue(stream, inv.deadline); };
  uint32_t entered = 0;
  if (inv.bytes() == 0 || (buffers && DirectMethod::can_run(inv, *buffers))) {
    entered = barrier();
    if (inv.bytes() > 0) direct_.move(inv, *buffers);
  } else if (inv.shape.largest_input <= kOneShotBytes) {
    give_copy(inv);
    entered = barrier();
    take_copies(inv);
  } else {
    // All ranks' streams have come here before anybody touches scratch memory.
    stream.finish(Deadline::after(kComputeTimeout));
    sync_.synchronise(inv);
    tiled_.run(inv);
    sync_.synchronise(inv);
    return nullptr;
  }
  return std::make_unique<BarrierCall>(barriers_, entered, barrier());
}

void execute_alone(DevicePeers& peers, const Call& call, ConstMemory input, Memory output,
                   Deadline deadline) {
  const bool scales =
      reduces(call.collective) && (call.op == ReduceOp::kPreMulSum || call.op == ReduceOp::kAvg);
  if (scales) {
    const double factor = call.op == ReduceOp::kPreMulSum ? call.factor : 1;
    peers.folds().fold_all(peers.stream(), std::span(&output.data, 1), std::span(&input.data, 1),
                           output.bytes, call.dtype, call.op, {.factor = factor});
  } else if (input.data != output.data) {
    peers.stream().copy(output, input);
  }
  peers.stream().finish(deadline);
}

}  // namespace gxp
