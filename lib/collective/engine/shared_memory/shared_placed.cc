// Calls whose lines say where the ranks' buffers are.
#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "lib/base/bytes.h"
#include "lib/base/host_caches.h"
#include "lib/collective/engine/shared_memory/shared_executor.h"

namespace gxp {
namespace {

using enum Collective;

constexpr uint64_t kUnused = 1;  // not an offset in the heap, nor none
// Of each rank's, while folded: all of them and the sum stay in L2.
size_t fetched_tile(size_t slots) {
  const size_t most = std::min(SharedSlots::kStagingBytes, own_caches().l2_bytes / 2) / slots;
  return std::clamp<size_t>(std::bit_floor(most), 4 << 10, 128 << 10);
}
// By the clock that all processes of a host have in common.
int64_t now_ns() {
  return std::chrono::nanoseconds(Deadline::Clock::now().time_since_epoch()).count();
}
// At a time: there and back through L1, or L2 where each copy is a call of the kernel.
size_t swapped_bytes(bool mapped) {
  return mapped
             ? std::bit_floor(own_caches().l1_bytes / 8)
             : std::clamp<size_t>(std::bit_floor(own_caches().l2_bytes / 16), 16 << 10, 64 << 10);
}

}  // namespace

// Whether a small input is copied wherever it lies: it fits a line, or copies have been the fastest
// for the memory of the last such call.
bool SharedExecutor::copies_anyway(const Job& job, const SharedWays& ways) {
  using enum SharedWay;
  // What fits a line must not lie where the line says where the buffers are.
  if (job.shape().largest_input <= 2 * SharedLine::kBytes) return true;
  if (!is_small(job)) return false;
  if (ways.communicator == kCopied && ways.ordinary == kCopied) return true;
  WayTrial* const trial = find_trial(job, ways);
  if (trial == nullptr || timed_ || !trial->is_settled_on(kCopied)) return false;
  trial->advance();
  return true;
}

// Inputs that the line has no room for: the lines say where the buffers are instead. Whether to
// copy is settled before, by where they were in the last such call.
bool SharedExecutor::run_placed(const Job& job, const SharedWays& ways) {
  using enum SharedWay;
  Known& known = job.known;
  const Placement mine = place(job);
  const bool expects_placed = known.memory == Known::kCommunicator;
  WayTrial* const trial = find_trial(job, ways);
  const auto [way, timed] =
      trial != nullptr ? trial->turn()
                       : WayTrial::Turn{expects_placed ? ways.communicator : ways.ordinary, false};
  const bool copies = way == kCopied && is_small(job);
  const bool copied = copies && (expects_placed || !mine.everywhere());
  prefetch_to_write(&space_.phase(group_, places_[size_t(rank_)]));
  wait_for_line(job);
  const int64_t entered = timed ? now_ns() : 0;
  if (copied) copy_to_slot(job);
  publish_placement(job, mine);
  if (copied) prefetch_next_copy(job);
  const size_t direct = gather_placements(job, mine);
  const size_t expected = expects_placed ? members_.size() : 0;
  const bool placed = direct == members_.size();
  if (placed && ways.communicator == kMessages) return false;
  settle_trial(job, direct);
  if (trial != nullptr && direct == expected) {
    trial->advance();
    if (timed) timed_.emplace(Timed{*trial, way, job.bytes(), entered});
  }
  if (copies && (expects_placed || direct == 0)) {
    take_from_copies(job);
  } else if (!run_by(expects_placed && !placed ? ways.ordinary : way, job, direct, copied)) {
    return false;
  }
  if (timed) stop_clock();
  return true;
}

// Runs a call whose inputs not all ranks have copied. False: messages are to be sent.
bool SharedExecutor::run_by(SharedWay way, const Job& job, size_t direct, bool copied) {
  using enum SharedWay;
  if (const Buffers* const buffers = find_buffers(job, direct, way == kKernel)) {
    run_direct(job, *buffers);
    return true;
  }
  if (way == kMessages) return false;
  if (way == kTiles || !is_small(job)) {
    run_staged(job);
    return true;
  }
  if (!copied) copy_to_slot(job);
  publish_phase(++phase_);
  await_phase(job, phase_, 1);
  take_from_copies(job);
  return true;
}

SharedExecutor::Placement SharedExecutor::place(const Job& job) const {
  const auto offset_of = [&](const std::byte* data, Range range) {
    return range.count == 0 ? kUnused : space_.offset_of(data, range.count);
  };
  return {.input = job.is_scaled() ? 0 : offset_of(job.input_data, job.own_input()),
          .output = offset_of(job.output_data, job.own_output())};
}

// Where calls like it learn which way is the fastest; null: they have none to choose. Asked before
// the ranks meet, so by what all of them know.
WayTrial* SharedExecutor::find_trial(const Job& job, const SharedWays& ways) {
  using enum SharedWay;
  Known& known = job.known;
  const bool small = is_small(job);
  const bool placed = known.memory == Known::kCommunicator;
  const SharedWay predicted = placed ? ways.communicator : ways.ordinary;
  if (!ways.open || predicted == kMessages || job.is_scaled() || (placed && !small)) return nullptr;
  WayTrial*& trial = known.trials[known.memory];
  if (trial != nullptr) return trial;
  std::vector<SharedWay> candidates = {predicted};
  const auto add = [&](SharedWay way, bool possible) {
    if (possible && way != predicted) candidates.push_back(way);
  };
  add(kCopied, small);
  add(kPlaced, placed);
  add(kKernel, !placed && ways.kernel);
  add(kTiles, !placed);
  const std::array key = {int(job.call.collective), int(known.memory), int(small),
                          int(std::bit_width(job.bytes()))};
  trial = &trials_.try_emplace(key, candidates, job.bytes()).first->second;
  return trial;
}

// All ranks have met: their lines say where the buffers are, and what the call that was timed took.
void SharedExecutor::settle_trial(const Job& job, size_t direct) {
  const Addresses& first = addresses_of(line_of(0, job.turn));
  const bool in_place = direct == 0 && first.input == first.output;
  job.known.memory = direct == members_.size() ? Known::kCommunicator
                     : in_place                ? Known::kInPlace
                                               : Known::kOrdinary;
  if (!timed_) return;
  int64_t last_in = timed_->entered_ns;
  int64_t last_out = timed_->left_ns;
  for (int rank = 0; rank < world_size(); ++rank) {
    const Addresses& theirs = addresses_of(line_of(rank, job.turn));
    last_in = std::max(last_in, theirs.entered_ns);
    last_out = std::max(last_out, theirs.left_ns);
  }
  timed_->trial.note(timed_->way, double(last_out - last_in) / double(timed_->bytes));
  timed_.reset();
}

void SharedExecutor::stop_clock() {
  if (timed_ && timed_->left_ns == 0) timed_->left_ns = now_ns();
}

// All ranks' buffers; null: they cannot be reached. All ranks find the same. `direct`: how many
// have theirs in communicator memory.
const SharedExecutor::Buffers* SharedExecutor::find_buffers(const Job& job, size_t direct,
                                                            bool by_kernel) {
  const Buffers* found = nullptr;
  if (direct == members_.size()) {
    if (job.known.buffers.inputs.empty()) resolve(job.known);
    found = &job.known.buffers;
  } else if (direct == 0 && by_kernel && find_remote_buffers(job)) {
    found = &remote_;
  }
  return found != nullptr && placed_alike(job, *found) ? found : nullptr;
}

// Enters the call.
void SharedExecutor::publish_placement(const Job& job, const Placement& mine) {
  // Word by word: a load that joins two stores waits for all stores before them.
  auto* const written = new (line_of(rank_, job.turn).payload) Placement;
  written->input = mine.input;
  written->output = mine.output;
  if (!mine.everywhere() || timed_) {
    auto* const addresses = new (written + 1) Addresses;
    addresses->input = uint64_t(job.input_data);
    addresses->output = uint64_t(job.output_data);
    addresses->reaches_all = space_.reaches_all_memory() && !job.is_scaled() ? 1 : 0;
    addresses->entered_ns = timed_ ? timed_->entered_ns : 0;
    addresses->left_ns = timed_ ? timed_->left_ns : 0;
  }
  publish_line(job);
}

// Returns how many ranks have all of their buffers in communicator memory, when all have entered.
size_t SharedExecutor::gather_placements(const Job& job, const Placement& mine) {
  Known& known = job.known;
  size_t direct = 0;
  for (int rank = 0; rank < world_size(); ++rank) {
    if (rank != rank_) await(job, rank, job.turn);
    const Placement& theirs = placement_of(line_of(rank, job.turn));
    Placement& before = known.placements[size_t(rank)];
    const uint64_t input = rank == rank_ ? mine.input : theirs.input;
    const uint64_t output = rank == rank_ ? mine.output : theirs.output;
    if (input != before.input || output != before.output) {
      before.input = input;
      before.output = output;
      known.buffers.inputs.clear();
    }
    direct += before.everywhere() ? 1 : 0;
  }
  return direct;
}

// Where the ranks' buffers are in this one's address space.
void SharedExecutor::resolve(Known& known) const {
  Buffers& buffers = known.buffers;
  const Collective collective = known.shape.call.collective;
  const bool written =
      collective != kAllGather && collective != kReduceScatter && collective != kScatter;
  buffers.outputs.clear();
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    const auto at = [&](uint64_t offset, Range range) {
      return range.count == 0 ? nullptr : space_.at(members_[rank], offset, range.count);
    };
    const auto [input, output] = known.placements[rank];
    buffers.inputs.push_back(at(input, known.shape.inputs[rank]));
    buffers.outputs.push_back(written ? at(output, known.shape.outputs[rank]) : nullptr);
  }
}

// False: the kernel does not let all ranks reach each other's.
bool SharedExecutor::find_remote_buffers(const Job& job) {
  remote_.inputs.clear();
  remote_.outputs.clear();
  for (int rank = 0; rank < world_size(); ++rank) {
    const Addresses& theirs = addresses_of(line_of(rank, job.turn));
    if (theirs.reaches_all == 0) return false;
    // NOLINTBEGIN(performance-no-int-to-ptr): of other processes
    remote_.inputs.push_back(reinterpret_cast<const std::byte*>(theirs.input));
    remote_.outputs.push_back(reinterpret_cast<std::byte*>(theirs.output));
    // NOLINTEND(performance-no-int-to-ptr)
  }
  return true;
}

// Chunks of an all-to-all can be swapped if all ranks are in place, and taken if none is.
bool SharedExecutor::placed_alike(const Job& job, const Buffers& buffers) {
  if (job.call.collective != kAllToAll) return true;
  for (size_t rank = 0; rank < buffers.inputs.size(); ++rank) {
    if ((buffers.inputs[rank] == buffers.outputs[rank]) != job.in_place({})) return false;
  }
  return true;
}

void SharedExecutor::run_direct(const Job& job, const Buffers& buffers) {
  if (reduces(job.call.collective) && !buffers.mapped) {
    pull_and_fold(job, buffers);
  } else {
    copy_or_fold(job, buffers);
  }
  publish_phase(++phase_);
  await_phase(job, phase_, 1);
}

void SharedExecutor::copy_or_fold(const Job& job, const Buffers& buffers) {
  switch (job.call.collective) {
    case kAllReduce:
    case kReduce:
      fold_share(job, buffers);
      break;
    case kGather:
      give_part(job, buffers);
      break;
    case kBroadcast:
      spread_share(job, buffers);
      break;
    case kAllToAll:
      if (job.in_place({})) {
        swap_chunks(job, buffers);
        break;
      }
      [[fallthrough]];
    default:
      take(job, buffers);
  }
}

void SharedExecutor::fetch(bool mapped, int rank, const std::byte* there, std::byte* here,
                           size_t bytes) const {
  if (mapped) {
    std::memcpy(here, there, bytes);
  } else {
    space_.memory_of_peer(members_[size_t(rank)])
        .read(uint64_t(there), {here, bytes, MemorySpace::kHost});
  }
}

void SharedExecutor::store(bool mapped, int rank, std::byte* there, const std::byte* here,
                           size_t bytes) const {
  if (mapped) {
    std::memcpy(there, here, bytes);
  } else {
    space_.memory_of_peer(members_[size_t(rank)])
        .write(uint64_t(there), {here, bytes, MemorySpace::kHost});
  }
}

// Through tiles that stay in the L2 cache. Only this rank touches its part of any buffer.
void SharedExecutor::pull_and_fold(const Job& job, const Buffers& buffers) {
  const Range part = job.part_of(rank_);
  const size_t slots = members_.size() + 1;
  const size_t step = fetched_tile(slots);
  std::byte* const tiles = slots_of(rank_).staging;
  for (size_t at = 0; at < part.count; at += step) {
    const Range piece{part.begin + at, std::min(step, part.count - at)};
    for (int rank = 0; rank < world_size(); ++rank) {
      std::byte* const tile = tiles + size_t(rank + 1) * step;
      if (rank != rank_)
        fetch(false, rank, buffers.inputs[size_t(rank)] + piece.begin, tile, piece.count);
      sources_[size_t(rank)] = rank == rank_ ? job.input(piece) : tile;
    }
    std::byte* const sum = job.own_output().count > 0 ? job.output(piece) : tiles;
    targets_.assign({sum});
    fold_sources(job, piece.count);
    spread_sum(job, buffers, piece, sum);
  }
}

void SharedExecutor::spread_sum(const Job& job, const Buffers& buffers, Range piece,
                                const std::byte* sum) {
  if (job.call.collective == kReduceScatter) return;
  for (int rank = 0; rank < world_size(); ++rank) {
    if (rank == rank_ || job.shape().outputs[size_t(rank)].count == 0) continue;
    store(false, rank, buffers.outputs[size_t(rank)] + piece.begin, sum, piece.count);
  }
}

void SharedExecutor::fold_share(const Job& job, const Buffers& buffers) {
  const Range share = job.shape().shares[size_t(rank_)];
  for (size_t i = 0; i < sources_.size(); ++i) sources_[i] = buffers.inputs[i] + share.begin;
  targets_.clear();
  for (std::byte* output : buffers.outputs) {
    if (output == nullptr) continue;
    targets_.push_back(output + share.begin);
    // What is in place then goes from cache to cache once, to be read and to be written.
    prefetch_to_write(targets_.back(), share.count);
  }
  fold_sources(job, share.count);
}

// So that the root need not take all alone.
void SharedExecutor::give_part(const Job& job, const Buffers& buffers) {
  const Range part = job.part_of(rank_);
  const int root = job.call.root;
  if (rank_ == root) return keep_own(job, part);
  if (part.count == 0) return;
  store(buffers.mapped, root, buffers.outputs[size_t(root)] + part.begin, job.input(part),
        part.count);
}

// So that no rank looks on: each takes its share from the root and gives it to all who lack it.
void SharedExecutor::spread_share(const Job& job, const Buffers& buffers) {
  const Range share = job.shape().shares[size_t(rank_)];
  const int root = job.call.root;
  if (share.count == 0) return;
  std::byte* const mine = job.output(share);
  if (rank_ == root) {
    keep_own(job, share);
  } else {
    fetch(buffers.mapped, root, buffers.inputs[size_t(root)] + share.begin, mine, share.count);
  }
  for (int rank = 0; rank < world_size(); ++rank) {
    std::byte* const theirs = buffers.outputs[size_t(rank)];
    const bool has_it = rank == root && theirs == buffers.inputs[size_t(rank)];
    if (rank == rank_ || has_it) continue;
    store(buffers.mapped, rank, theirs + share.begin, mine, share.count);
  }
}

// Chunk j of rank i against chunk i of rank j: the lower rank swaps the first half.
void SharedExecutor::swap_chunks(const Job& job, const Buffers& buffers) {
  const Range own = job.part_of(rank_);
  const size_t half = std::min(own.count, round_up(own.count / 2, size_t{64}));
  const size_t step = swapped_bytes(buffers.mapped);
  std::byte* const held = slots_of(rank_).staging;
  for (int rank = 0; rank < world_size(); ++rank) {
    if (rank == rank_) continue;
    const size_t end = rank_ < rank ? half : own.count;
    std::byte* const mine = job.output(job.part_of(rank));
    std::byte* const theirs = buffers.outputs[size_t(rank)] + own.begin;
    for (size_t at = rank_ < rank ? 0 : half; at < end; at += step) {
      const size_t size = std::min(step, end - at);
      fetch(buffers.mapped, rank, theirs + at, held, size);
      store(buffers.mapped, rank, theirs + at, mine + at, size);
      std::memcpy(mine + at, held, size);
    }
  }
}

}  // namespace gxp
