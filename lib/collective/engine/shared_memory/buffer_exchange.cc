#include "lib/collective/engine/shared_memory/buffer_exchange.h"

#include <algorithm>
#include <new>

namespace gxp {
namespace {

using enum Collective;

constexpr uint64_t kUnused = 1;  // marks a buffer that the call does not use; no offset, and not 0

}  // namespace

BufferPlacement BufferExchange::place(const Invocation& inv) const {
  const auto offset_of = [&](const std::byte* data, Range range) {
    return range.count == 0 ? kUnused : sync_.arena().offset_of(data, range.count);
  };
  return {.input = inv.is_scaled() ? 0 : offset_of(inv.input_data, inv.own_input()),
          .output = offset_of(inv.output_data, inv.own_output())};
}

void BufferExchange::publish(const Invocation& inv, const BufferPlacement& mine,
                             const std::optional<CallTimes>& last_timed) {
  // Word by word: a load that joins two stores waits for all stores before them.
  auto* const placement = new (sync_.line(inv.rank, inv.index).payload) BufferPlacement;
  placement->input = mine.input;
  placement->output = mine.output;
  if (!mine.everywhere() || last_timed) {
    auto* const addresses = new (placement + 1) Addresses;
    addresses->input = uint64_t(inv.input_data);
    addresses->output = uint64_t(inv.output_data);
    addresses->reaches_all = sync_.arena().reaches_all_memory() && !inv.is_scaled() ? 1 : 0;
    addresses->times.entered_ns = last_timed ? last_timed->entered_ns : 0;
    addresses->times.left_ns = last_timed ? last_timed->left_ns : 0;
  }
  sync_.publish_line(inv);
}

size_t BufferExchange::gather(const Invocation& inv, const BufferPlacement& mine,
                              KnownPlacements& known) {
  size_t everywhere = 0;
  for (int rank = 0; rank < sync_.world_size(); ++rank) {
    if (rank != inv.rank) sync_.await(inv, rank);
    const BufferPlacement& current = rank == inv.rank ? mine : placement_on(inv, rank);
    const uint64_t input = current.input;
    const uint64_t output = current.output;
    BufferPlacement& before = known.by_rank[size_t(rank)];
    if (input != before.input || output != before.output) {
      before.input = input;
      before.output = output;
      known.buffers.inputs.clear();
    }
    everywhere += before.everywhere() ? 1 : 0;
  }
  return everywhere;
}

const RankBuffers& BufferExchange::resolve(const Invocation& inv, KnownPlacements& known) const {
  RankBuffers& buffers = known.buffers;
  if (!buffers.inputs.empty()) return buffers;
  const Collective collective = inv.call.collective;
  const bool written =
      collective != kAllGather && collective != kReduceScatter && collective != kScatter;
  buffers.outputs.clear();
  for (int rank = 0; rank < sync_.world_size(); ++rank) {
    const auto at = [&](uint64_t offset, Range range) {
      return range.count == 0 ? nullptr : sync_.arena().at(sync_.member(rank), offset, range.count);
    };
    const auto [input, output] = known.by_rank[size_t(rank)];
    buffers.inputs.push_back(at(input, inv.shape.inputs[size_t(rank)]));
    buffers.outputs.push_back(written ? at(output, inv.shape.outputs[size_t(rank)]) : nullptr);
  }
  return buffers;
}

const RankBuffers* BufferExchange::find_by_cma(const Invocation& inv) {
  by_cma_.inputs.clear();
  by_cma_.outputs.clear();
  for (int rank = 0; rank < sync_.world_size(); ++rank) {
    const Addresses& theirs = addresses_on(inv, rank);
    if (theirs.reaches_all == 0) return nullptr;
    by_cma_.inputs.push_back(reinterpret_cast<const std::byte*>(theirs.input));
    by_cma_.outputs.push_back(reinterpret_cast<std::byte*>(theirs.output));
  }
  return &by_cma_;
}

bool BufferExchange::is_in_place(const Invocation& inv) const {
  const Addresses& first = addresses_on(inv, 0);
  return first.input == first.output;
}

CallTimes BufferExchange::times(const Invocation& inv, CallTimes mine) const {
  for (int rank = 0; rank < sync_.world_size(); ++rank) {
    const CallTimes& theirs = addresses_on(inv, rank).times;
    mine.entered_ns = std::max(mine.entered_ns, theirs.entered_ns);
    mine.left_ns = std::max(mine.left_ns, theirs.left_ns);
  }
  return mine;
}

}  // namespace gxp
