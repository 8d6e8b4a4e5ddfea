#include "lib/collective/shared_executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/hash.h"

namespace gxp {
namespace {

using enum Collective;

constexpr size_t kTileBytes = 256 << 10;    // of all parts together, at most
constexpr size_t kMinTileBytes = 16 << 10;  // a synchronisation costs as much as 2 KiB or so
constexpr size_t kCopiedBytes = 256;  // up to here a copy is cheaper than to synchronise twice
constexpr size_t kAverageBytes = 16 << 10;  // folded, divided and stored while in L1
constexpr uint64_t kUnused = 1;             // not an offset in the heap, nor none

// All that the ranks must agree on; padding is zero.
struct Note {
  uint64_t count = 0;
  uint32_t sequence = 0;
  int32_t root = 0;
  uint8_t collective = 0;
  uint8_t dtype = 0;
  uint8_t op = 0;
  uint8_t zero[5] = {};
};
static_assert(sizeof(Note) <= sizeof(SharedLine::note));

Note note_of(const Call& call) {
  return {.count = call.count,
          .sequence = call.sequence,
          .root = call.root,
          .collective = uint8_t(call.collective),
          .dtype = uint8_t(call.dtype),
          .op = uint8_t(call.op)};
}

Call call_of(const Note& note) {
  return {.collective = Collective(note.collective),
          .dtype = DType(note.dtype),
          .op = ReduceOp(note.op),
          .count = note.count,
          .root = note.root,
          .sequence = note.sequence};
}

// The number of calls here, and a hash of this one.
uint64_t word_of(const Note& note, uint32_t turn) {
  uint64_t hash = note.count * 0x9e3779b97f4a7c15u + uint64_t(uint32_t(note.root));
  hash ^= uint64_t{note.sequence} << 8;
  hash ^= uint64_t{note.collective} << 40 | uint64_t{note.dtype} << 48 | uint64_t{note.op} << 56;
  hash *= 0xd6e8feb86659fd93u;
  return uint64_t{turn + 1} << 32 | hash >> 32;
}
// Whether `word` is of this turn or a later one; turns wrap around.
bool reached(uint64_t word, uint32_t turn) { return int32_t(uint32_t(word >> 32) - turn) > 0; }

Range bytes_of(Range elements, const Call& call) {
  const size_t size = size_of(call.dtype);
  return {elements.begin * size, elements.count * size};
}

// Inputs are scaled before they are folded, so never folded where they are.
bool is_scaled(const Call& call) {
  return call.op == ReduceOp::kPreMulSum && reduces(call.collective);
}

bool one_root_reads(Collective c) { return c == kReduce || c == kGather; }
bool one_root_writes(Collective c) { return c == kBroadcast || c == kScatter; }

}  // namespace

SharedExecutor::SharedExecutor(SharedSpace& space, std::vector<int> members, int rank, int group)
    : space_(space),
      members_(std::move(members)),
      rank_(rank),
      group_(group),
      seen_(members_.size()),
      inputs_(members_.size()),
      sources_(members_.size()) {
  targets_.reserve(members_.size());
  space_.prefault(group_);
}

void SharedExecutor::execute(const Call& call, ConstMemory input, Memory output,
                             Deadline deadline) {
  const Extents extents = extents_of(call, rank_, world_size());
  const Job job{.call = call,
                .turn = turn_++,
                .input_range = bytes_of(extents.input, call),
                .output_range = bytes_of(extents.output, call),
                .input_data = input.data,
                .output_data = output.data,
                .deadline = deadline};
  size_t largest = 0;
  for (int rank = 0; rank < world_size(); ++rank) {
    largest = std::max(largest, input_range_of(call, rank).count);
  }
  // Each rank reads all copies: more ranks, smaller copies.
  const bool small = largest <= 2 * SharedSlots::kSmallBytes / size_t(world_size());
  const bool rooted = has_root(call.collective);
  if (largest <= kCopiedBytes || (small && rooted)) {
    run_copied(job);
  } else {
    run_placed(job, small);
  }
}

Range SharedExecutor::input_range_of(const Call& call, int rank) const {
  return bytes_of(extents_of(call, rank, world_size()).input, call);
}

// What `rank` folds, or gives, or gets. Where all of the buffer is folded, parts are whole cache
// lines.
Range SharedExecutor::part_of(const Call& call, int rank) const {
  const size_t all = call.count * size_of(call.dtype);
  switch (call.collective) {
    case kBroadcast:
      return rank == call.root ? Range{0, all} : Range{};
    case kAllReduce:
    case kReduce: {
      const auto n = size_t(world_size());
      const size_t share = round_up((all + n - 1) / n, size_t{64});
      const size_t begin = std::min(all, share * size_t(rank));
      return {begin, std::min(share, all - begin)};
    }
    default:
      return bytes_of(Chunks(call.count, world_size())[rank], call);
  }
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
  SharedLine& line = line_of(rank_, job.turn);
  const Note note = note_of(job.call);
  std::memcpy(line.note, &note, sizeof note);
  space_.publish(line.word, word_of(note, job.turn), members_);
}

// Returns when `rank` has come to `turn`; checks that it calls the same if it is this one.
void SharedExecutor::await(const Job& job, int rank, uint32_t turn) {
  uint64_t& seen = seen_[size_t(rank)];
  if (reached(seen, turn)) return;
  const SharedLine& line = line_of(rank, turn);
  const auto ready = [&] { return reached(line.word.load(std::memory_order_acquire), turn); };
  space_.wait(ready, std::span(&members_[size_t(rank)], 1), job.deadline);
  seen = line.word.load(std::memory_order_acquire);
  if (turn == job.turn && seen != word_of(note_of(job.call), turn)) fail_mismatch(job, rank);
}

void SharedExecutor::fail_mismatch(const Job& job, int rank) {
  Note note;
  std::memcpy(&note, line_of(rank, job.turn).note, sizeof note);
  fail(ErrorKind::kPeer, "rank {} called {} where rank {} called {}", rank,
       to_string(call_of(note)), rank_, to_string(job.call));
}

void SharedExecutor::await_phase(const Job& job, uint64_t phase) {
  for (int rank = 0; rank < world_size(); ++rank) {
    const auto& count = space_.phase(group_, rank).count;
    const auto ready = [&] { return count.load(std::memory_order_acquire) >= phase; };
    space_.wait(ready, std::span(&members_[size_t(rank)], 1), job.deadline);
  }
}

// ---- Copied

void SharedExecutor::run_copied(const Job& job) {
  const Collective collective = job.call.collective;
  wait_for_line(job);
  copy_to_slot(job);
  publish_line(job);
  for (int rank = 0; rank < world_size(); ++rank) {
    const bool needed = one_root_reads(collective)    ? rank_ == job.call.root
                        : one_root_writes(collective) ? rank == job.call.root
                                                      : true;
    if (needed && rank != rank_) await(job, rank, job.turn);
  }
  take_from_copies(job);
}

std::byte* SharedExecutor::copy_of(const Job& job, int rank) const {
  const bool fits = input_range_of(job.call, rank).count <= SharedLine::kBytes;
  return fits ? line_of(rank, job.turn).payload
              : slots_of(rank).small[job.turn % SharedSlots::kLines];
}

void SharedExecutor::copy_to_slot(const Job& job) {
  if (job.input_range.count == 0) return;
  const Memory slot{copy_of(job, rank_), job.input_range.count, MemorySpace::kHost};
  std::memcpy(slot.data, job.input_data, slot.bytes);
  if (is_scaled(job.call)) scale(slot, job.call.dtype, job.call.factor);
}

void SharedExecutor::take_from_copies(const Job& job) {
  const Collective collective = job.call.collective;
  for (int rank = 0; rank < world_size(); ++rank) {
    inputs_[size_t(rank)] = copy_of(job, rank);
  }
  if (collective == kAllReduce || (collective == kReduce && rank_ == job.call.root)) {
    std::copy(inputs_.begin(), inputs_.end(), sources_.begin());
    targets_.assign({job.output_data});
    fold_sources(job, job.output_range.count);
  } else {
    take(job);
  }
}

// Takes from inputs_ what this rank needs, but for all-reduce and reduce.
void SharedExecutor::take(const Job& job) {
  const auto part = [&](int rank) { return part_of(job.call, rank); };
  const int root = job.call.root;
  switch (job.call.collective) {
    case kReduceScatter:
      for (int rank = 0; rank < world_size(); ++rank) {
        sources_[size_t(rank)] = inputs_[size_t(rank)] + part(rank_).begin;
      }
      targets_.assign({job.output_data});
      return fold_sources(job, part(rank_).count);
    case kGather:
      if (rank_ != root) return;
      [[fallthrough]];
    case kAllGather:
      for (int rank = 0; rank < world_size(); ++rank) take_part(job, rank, part(rank), part(rank));
      return;
    case kBroadcast:
      return take_part(job, root, part(root), part(root));
    case kScatter:
      return take_part(job, root, part(rank_), part(rank_));
    case kAllToAll:
      for (int rank = 0; rank < world_size(); ++rank) take_part(job, rank, part(rank_), part(rank));
      return;
    default:
      return;
  }
}

void SharedExecutor::take_part(const Job& job, int from, Range theirs, Range mine) {
  if (from == rank_) return keep_own(job, mine);
  if (mine.count == 0) return;
  const size_t begin = theirs.begin - input_range_of(job.call, from).begin;
  std::memcpy(job.output(mine), inputs_[size_t(from)] + begin, mine.count);
}

void SharedExecutor::keep_own(const Job& job, Range range) {
  if (range.count == 0 || job.in_place(range)) return;
  std::memcpy(job.output(range), job.input(range), range.count);
}

void SharedExecutor::fold_sources(const Job& job, size_t bytes) {
  const auto [dtype, op] = std::pair(job.call.dtype, job.call.op);
  if (op != ReduceOp::kAvg) return fold_all(targets_, sources_, bytes, dtype, op);
  std::byte* const first = targets_.front();
  for (size_t at = 0; at < bytes; at += kAverageBytes) {
    const size_t size = std::min(kAverageBytes, bytes - at);
    std::byte* const target = first + at;
    fold_all(std::span(&target, 1), sources_, size, dtype, op);
    scale({target, size, MemorySpace::kHost}, dtype, 1.0 / world_size());
    for (size_t i = 1; i < targets_.size(); ++i) std::memcpy(targets_[i] + at, target, size);
    for (const std::byte*& source : sources_) source += size;
  }
}

// ---- Direct and staged

// Inputs that the line has no room for: the lines say where the buffers are instead.
void SharedExecutor::run_placed(const Job& job, bool small) {
  const auto place = [&](const std::byte* data, Range range) {
    return range.count == 0 ? kUnused : space_.offset_of({data, range.count, MemorySpace::kHost});
  };
  Placement mine{.input = place(job.input_data, job.input_range),
                 .output = place(job.output_data, job.output_range)};
  // Chunks would overwrite each other.
  if (job.call.collective == kAllToAll && job.in_place({})) mine.input = 0;
  if (is_scaled(job.call)) mine.input = 0;
  wait_for_line(job);
  std::memcpy(line_of(rank_, job.turn).payload, &mine, sizeof mine);
  const bool copied = small && !mine.everywhere();
  if (copied) copy_to_slot(job);
  publish_line(job);
  placements_.resize(members_.size());
  size_t direct = 0;
  for (int rank = 0; rank < world_size(); ++rank) {
    if (rank != rank_) await(job, rank, job.turn);
    Placement& theirs = placements_[size_t(rank)];
    std::memcpy(&theirs, line_of(rank, job.turn).payload, sizeof theirs);
    direct += theirs.everywhere() ? 1 : 0;
  }
  if (direct == members_.size()) return run_direct(job);
  if (!small) return run_staged(job);
  if (direct > 0) {
    if (!copied) copy_to_slot(job);
    space_.publish(space_.phase(group_, rank_).count, ++phase_, members_);
    await_phase(job, phase_);
  }
  take_from_copies(job);
}

void SharedExecutor::run_direct(const Job& job) {
  const Call& call = job.call;
  for (int rank = 0; rank < world_size(); ++rank) {
    const Range range = input_range_of(call, rank);
    inputs_[size_t(rank)] =
        range.count == 0
            ? nullptr
            : space_.at(members_[size_t(rank)], placements_[size_t(rank)].input, range.count);
  }
  if (call.collective == kAllReduce || call.collective == kReduce) {
    const Range part = part_of(call, rank_);
    targets_.clear();
    for (int rank = 0; rank < world_size(); ++rank) {
      sources_[size_t(rank)] = inputs_[size_t(rank)] + part.begin;
      const Range output = bytes_of(extents_of(call, rank, world_size()).output, call);
      if (output.count == 0) continue;
      targets_.push_back(
          space_.at(members_[size_t(rank)], placements_[size_t(rank)].output, output.count) +
          part.begin);
    }
    fold_sources(job, part.count);
  } else {
    take(job);
  }
  space_.publish(space_.phase(group_, rank_).count, ++phase_, members_);
  await_phase(job, phase_);
}

// How a large call is cut: tile t holds piece t of each part. The slots lie in the staging memory
// of each rank: three tiles of what it gives, two of its sums.
struct SharedExecutor::Tiling {
  static constexpr uint64_t kInSlots = 3;
  static constexpr uint64_t kSumSlots = 2;
  // Of two or more ranks; a sum is one part.
  static_assert(kInSlots * kTileBytes + kSumSlots * kTileBytes / 2 <= SharedSlots::kStagingBytes);

  uint64_t parts = 0;  // that a rank stages at most
  size_t piece_bytes = 0;
  uint64_t tiles = 0;

  [[nodiscard]] Range piece(Range part, uint64_t tile) const {
    const size_t begin = std::min(part.count, tile * piece_bytes);
    return {part.begin + begin, std::min(piece_bytes, part.count - begin)};
  }
  [[nodiscard]] std::byte* given(SharedSlots& slots, uint64_t tile, uint64_t slot) const {
    return slots.staging + (tile % kInSlots * parts + slot) * piece_bytes;
  }
  [[nodiscard]] std::byte* sum(SharedSlots& slots, uint64_t tile) const {
    return slots.staging + (kInSlots * parts + tile % kSumSlots) * piece_bytes;
  }
};

// In iteration i a rank copies tile i in, and after all have done iteration i - 1, folds tile i - 1
// and copies tile i - 2 (without sums: i - 1) out. A slot is written again after its readers have
// announced the iteration in which they read it: hence their numbers.
void SharedExecutor::run_staged(const Job& job) {
  const Collective collective = job.call.collective;
  const bool whole = collective == kBroadcast || collective == kAllGather || collective == kGather;
  const size_t all = job.call.count * size_of(job.call.dtype);
  const size_t tile_bytes = std::clamp(all / 4, kMinTileBytes, kTileBytes);
  Tiling tiling{.parts = whole ? 1 : uint64_t(world_size())};
  tiling.piece_bytes = std::max<size_t>(tile_bytes / tiling.parts / 64 * 64, 64);
  size_t longest = 0;
  for (int rank = 0; rank < world_size(); ++rank) {
    longest = std::max(longest, part_of(job.call, rank).count);
  }
  tiling.tiles = (longest + tiling.piece_bytes - 1) / tiling.piece_bytes;
  const bool folds = reduces(job.call.collective);
  const uint64_t delay = folds ? 2 : 1;  // of copying out
  for (uint64_t i = 0; i < tiling.tiles + delay; ++i) {
    if (i < tiling.tiles) stage_in(job, tiling, i);
    if (i > 0) await_phase(job, phase_ + i);
    if (folds && i > 0 && i <= tiling.tiles) fold_tile(job, tiling, i - 1);
    if (i >= delay) copy_out(job, tiling, i - delay);
    space_.publish(space_.phase(group_, rank_).count, phase_ + i + 1, members_);
  }
  phase_ += tiling.tiles + delay;
}

void SharedExecutor::stage_in(const Job& job, const Tiling& tiling, uint64_t tile) {
  const Call& call = job.call;
  const bool scaled = is_scaled(call);
  if (one_root_writes(call.collective) && rank_ != call.root) return;
  const auto give = [&](int part, uint64_t slot) {
    const Range piece = tiling.piece(part_of(call, part), tile);
    if (piece.count == 0) return;
    std::byte* const place = tiling.given(slots_of(rank_), tile, slot);
    std::memcpy(place, job.input(piece), piece.count);
    if (scaled) scale({place, piece.count, MemorySpace::kHost}, call.dtype, call.factor);
  };
  if (tiling.parts == 1) return give(rank_, 0);
  for (int part = 0; part < world_size(); ++part) {
    if (part != rank_ || scaled) give(part, uint64_t(part));
  }
}

void SharedExecutor::fold_tile(const Job& job, const Tiling& tiling, uint64_t tile) {
  const Call& call = job.call;
  const Range piece = tiling.piece(part_of(call, rank_), tile);
  if (piece.count == 0) return;
  for (int rank = 0; rank < world_size(); ++rank) {
    const bool own = rank == rank_ && !is_scaled(call);
    sources_[size_t(rank)] =
        own ? job.input(piece) : tiling.given(slots_of(rank), tile, uint64_t(rank_));
  }
  targets_.clear();
  if (job.output_range.count > 0) targets_.push_back(job.output(piece));
  if (call.collective == kAllReduce || targets_.empty()) {
    targets_.push_back(tiling.sum(slots_of(rank_), tile));
  }
  fold_sources(job, piece.count);
}

void SharedExecutor::copy_out(const Job& job, const Tiling& tiling, uint64_t tile) {
  const Call& call = job.call;
  if (job.output_range.count == 0 || call.collective == kReduceScatter) return;
  const auto take = [&](Range part, const std::byte* from) {
    const Range piece = tiling.piece(part, tile);
    if (piece.count > 0) std::memcpy(job.output(piece), from, piece.count);
  };
  if (one_root_writes(call.collective)) {
    const uint64_t slot = call.collective == kScatter ? uint64_t(rank_) : 0;
    const Range part = part_of(call, call.collective == kScatter ? rank_ : call.root);
    if (rank_ == call.root) return keep_own(job, tiling.piece(part, tile));
    return take(part, tiling.given(slots_of(call.root), tile, slot));
  }
  for (int rank = 0; rank < world_size(); ++rank) {
    const Range part = part_of(call, rank);
    if (rank == rank_) {
      if (!reduces(call.collective)) keep_own(job, tiling.piece(part, tile));
    } else if (reduces(call.collective)) {
      take(part, tiling.sum(slots_of(rank), tile));
    } else {
      const uint64_t slot = call.collective == kAllToAll ? uint64_t(rank_) : 0;
      take(part, tiling.given(slots_of(rank), tile, slot));
    }
  }
}

}  // namespace gxp
