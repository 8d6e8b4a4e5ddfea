#include "lib/collective/engine/shared_memory/shared_executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

using enum Collective;

// Whether this rank takes something from `rank`.
bool needs(const Call& call, int mine, int rank) {
  if (root_gives(call.collective)) return rank == call.root;
  return !has_root(call.collective) || mine == call.root;
}

}  // namespace

SharedExecutor::SharedExecutor(SharedSpace& space, FlightRecorder& recorder,
                               std::vector<int> members, int rank, int group)
    : space_(space),
      recorder_(&recorder),
      members_(std::move(members)),
      rank_(rank),
      group_(group),
      seen_(members_.size()),
      sources_(members_.size()),
      most_copied_(most_copied(int(members_.size()))) {
  copies_.inputs.resize(members_.size());
  targets_.reserve(members_.size());
  const auto ranks = space_.ranks();
  for (const int member : members_)
    places_.push_back(int(std::ranges::find(ranks, member) - ranks.begin()));
  space_.prefault(group_);
}

SharedExecutor::Known& SharedExecutor::find(const Call& call) {
  for (auto& known : known_) {
    if (known && same_signature(known->shape.call, call)) return *known;
  }
  auto& known = known_[next_known_++ % known_.size()];
  known.emplace(Known{SharedCall(call, world_size()), std::vector<Placement>(members_.size())});
  return *known;
}

bool SharedExecutor::execute(const Call& call, ConstMemory input, Memory output, Deadline deadline,
                             const SharedWays& ways) {
  Known& known = find(call);
  const SharedCall& shape = known.shape;
  const Job job{.call = call,
                .known = known,
                .turn = turn_,
                .word = shape.word(call.sequence, turn_),
                .input_data = input.data,
                .output_data = output.data,
                .rank = rank_,
                .deadline = deadline};
  ++turn_;
  recorded_ = Recorded::kNot;
  lingered_ = false;
  bool done = true;
  if (copies_anyway(job, ways)) {
    run_copied(job);
  } else {
    done = run_placed(job, ways);
  }
  finish(job);
  return done;
}

// ---- Synchronisation

// A line is written again when all have left its last call, so have entered the one after it.
void SharedExecutor::wait_for_line(const Job& job) {
  if (++lines_used_ <= SharedSlots::kLines) return;
  for (int rank = 0; rank < world_size(); ++rank) {
    if (rank != rank_) await(job, rank, job.turn - uint32_t(SharedSlots::kLines) + 1);
  }
}

// This rank has entered the call.
void SharedExecutor::publish_line(const Job& job) {
  write_note(job.call, job.turn, slots_of(rank_));
  space_.publish(line_of(rank_, job.turn).word, job.word, members_);
  prefetch_to_write(&line_of(rank_, job.turn + 1));
  record(job, job.is_quick() ? Deadline::Clock::time_point{} : Deadline::Clock::now());
}

// Once in a call, while others learn that this rank has entered it; with the exact time, too, where
// it must wait anyway, or is not over in some 10 us.
void SharedExecutor::record(const Job& job, Deadline::Clock::time_point now) {
  using enum Recorded;
  const bool exactly = now != Deadline::Clock::time_point{};
  if (recorded_ == kNot) {
    recorder_->enter(job.call, job.shape().algorithm, uint8_t(group_), now);
  } else if (recorded_ == kRoughly && exactly) {
    recorder_->entered_at(now);
  } else {
    return;
  }
  recorded_ = exactly ? kExactly : kRoughly;
}

void SharedExecutor::finish(const Job& job) {
  if (job.is_quick() && !lingered_) {
    recorder_->done_at_once();
  } else {
    recorder_->done();
  }
}

template <class Ready>
void SharedExecutor::wait(const Job& job, int rank, uint64_t step, const Ready& ready) {
  if (SharedSpace::look(ready)) return;
  record(job, Deadline::Clock::now());
  const int& member = members_[size_t(rank)];
  recorder_->step(int(step), member);
  lingered_ |= !space_.wait(ready, std::span(&member, 1), job.deadline);
}

// Returns when `rank` has come to `turn`; checks that it calls the same if it is this one.
void SharedExecutor::await(const Job& job, int rank, uint32_t turn) {
  uint64_t& seen = seen_[size_t(rank)];
  if (has_reached(seen, turn)) return;
  const SharedLine& line = line_of(rank, turn);
  const auto ready = [&] { return has_reached(line.word.load(std::memory_order_acquire), turn); };
  wait(job, rank, 0, ready);
  seen = line.word.load(std::memory_order_acquire);
  if (turn == job.turn && seen != job.word) fail_mismatch(job, rank);
}

void SharedExecutor::fail_mismatch(const Job& job, int rank) {
  fail(ErrorKind::kPeer, "rank {} called {} where rank {} called {}", rank,
       to_string(read_note(slots_of(rank), job.turn)), rank_, to_string(job.call));
}

void SharedExecutor::publish_phase(uint64_t phase) {
  space_.publish(space_.phase(group_, places_[size_t(rank_)]).count, phase, members_);
}

void SharedExecutor::await_phase(const Job& job, uint64_t phase, uint64_t step) {
  for (int rank = 0; rank < world_size(); ++rank) {
    const auto& count = space_.phase(group_, places_[size_t(rank)]).count;
    const auto ready = [&] { return count.load(std::memory_order_acquire) >= phase; };
    wait(job, rank, step, ready);
  }
}

// ---- Copied

void SharedExecutor::run_copied(const Job& job) {
  wait_for_line(job);
  copy_to_slot(job);
  publish_line(job);
  prefetch_next_copy(job);
  for (int rank = 0; rank < world_size(); ++rank) {
    if (rank != rank_ && needs(job.call, rank_, rank)) await(job, rank, job.turn);
  }
  take_from_copies(job);
}

std::byte* SharedExecutor::copy_of(const Job& job, int rank) const {
  const bool fits = job.shape().inputs[size_t(rank)].count <= SharedLine::kBytes;
  return fits ? line_of(rank, job.turn).payload
              : slots_of(rank).small[job.turn % SharedSlots::kLines];
}

void SharedExecutor::copy_to_slot(const Job& job) {
  const Memory slot{copy_of(job, rank_), job.own_input().count, MemorySpace::kHost};
  if (slot.bytes == 0) return;
  std::memcpy(slot.data, job.input_data, slot.bytes);
  if (job.is_scaled()) scale(slot, job.call.dtype, job.call.factor);
}

// Calls are often followed by others like them.
void SharedExecutor::prefetch_next_copy(const Job& job) {
  const size_t bytes = job.own_input().count;
  prefetch_to_write(slots_of(rank_).small[(job.turn + 1) % SharedSlots::kLines],
                    bytes > SharedLine::kBytes ? bytes : 0);
}

void SharedExecutor::take_from_copies(const Job& job) {
  const Collective collective = job.call.collective;
  for (int rank = 0; rank < world_size(); ++rank) copies_.inputs[size_t(rank)] = copy_of(job, rank);
  // What was stored a moment ago is slow to load by other widths.
  if (!job.is_scaled()) copies_.inputs[size_t(rank_)] = job.input_data;
  if (collective == kAllReduce || (collective == kReduce && rank_ == job.call.root)) {
    sources_ = copies_.inputs;
    targets_.assign({job.output_data});
    fold_sources(job, job.own_output().count);
  } else {
    take(job, copies_);
  }
}

// Takes what this rank needs from the ranks' inputs, but for all-reduce and reduce.
void SharedExecutor::take(const Job& job, const Buffers& buffers) {
  const auto take_part = [&](int from, Range theirs, Range mine) {
    if (from == rank_) return keep_own(job, mine);
    if (mine.count == 0) return;
    const size_t begin = theirs.begin - job.shape().inputs[size_t(from)].begin;
    fetch(buffers.mapped, from, buffers.inputs[size_t(from)] + begin, job.output(mine), mine.count);
  };
  const Range own = job.part_of(rank_);
  const int root = job.call.root;
  switch (job.call.collective) {
    case kReduceScatter:
      for (size_t rank = 0; rank < sources_.size(); ++rank)
        sources_[rank] = buffers.inputs[rank] + own.begin;
      targets_.assign({job.output_data});
      return fold_sources(job, own.count);
    case kGather:
      if (rank_ != root) return;
      [[fallthrough]];
    case kAllGather:
      for (int rank = 0; rank < world_size(); ++rank)
        take_part(rank, job.part_of(rank), job.part_of(rank));
      return;
    case kBroadcast:
      return take_part(root, job.part_of(root), job.part_of(root));
    case kScatter:
      return take_part(root, own, own);
    case kAllToAll:
      for (int rank = 0; rank < world_size(); ++rank) take_part(rank, own, job.part_of(rank));
      return;
    default:
      return;
  }
}

void SharedExecutor::keep_own(const Job& job, Range range) {
  if (range.count == 0 || job.in_place(range)) return;
  std::memcpy(job.output(range), job.input(range), range.count);
}

void SharedExecutor::fold_sources(const Job& job, size_t bytes, bool by_copies) {
  const auto [dtype, op] = std::pair(job.call.dtype, job.call.op);
  const bool averages = op == ReduceOp::kAvg;
  if (!averages && (!by_copies || targets_.size() == 1))
    return fold_all(targets_, sources_, bytes, dtype, op);
  std::byte* const first = targets_.front();
  for (size_t at = 0; at < bytes; at += kFoldedBytes) {
    const size_t size = std::min(kFoldedBytes, bytes - at);
    std::byte* const target = first + at;
    fold_all(std::span(&target, 1), sources_, size, dtype, op);
    if (averages) scale({target, size, MemorySpace::kHost}, dtype, 1.0 / world_size());
    for (size_t i = 1; i < targets_.size(); ++i) std::memcpy(targets_[i] + at, target, size);
    for (const std::byte*& source : sources_) source += size;
  }
}

}  // namespace gxp
