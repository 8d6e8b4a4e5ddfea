#include "lib/collective/engine/shared_memory/shared_call.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "lib/base/bytes.h"

namespace gxp {
namespace {

struct Note {
  uint64_t count;
  uint32_t sequence;
  int32_t root;
  uint8_t collective;
  uint8_t dtype;
  uint8_t op;
  uint8_t space;
};
static_assert(sizeof(Note) <= SharedSlots::kNoteBytes);

Range bytes_of(Range elements, const Call& call) {
  const size_t size = size_of(call.dtype);
  return {elements.begin * size, elements.count * size};
}

Range share_of(const Call& call, int rank, int world_size) {
  const size_t all = call.count * size_of(call.dtype);
  const auto n = size_t(world_size);
  const size_t share = round_up((all + n - 1) / n, size_t{64});
  const size_t begin = std::min(all, share * size_t(rank));
  return {begin, std::min(share, all - begin)};
}

Range part_of(const Call& call, int rank, int world_size) {
  switch (call.collective) {
    case Collective::kBroadcast:
      return rank == call.root ? Range{0, call.count * size_of(call.dtype)} : Range{};
    case Collective::kAllReduce:
    case Collective::kReduce:
      return share_of(call, rank, world_size);
    default:
      return bytes_of(Chunks(call.count, world_size)[rank], call);
  }
}

constexpr uint64_t kMix = 0x9e3779b97f4a7c15u;

}  // namespace

SharedCall::SharedCall(const Call& call_in, int world_size)
    : call(call_in), algorithm(find_shared_algorithm(call_in.collective)->name) {
  for (int rank = 0; rank < world_size; ++rank) {
    const Extents extents = extents_of(call, rank, world_size);
    inputs.push_back(bytes_of(extents.input, call));
    outputs.push_back(bytes_of(extents.output, call));
    parts.push_back(part_of(call, rank, world_size));
    shares.push_back(share_of(call, rank, world_size));
    largest_input = std::max(largest_input, inputs.back().count);
  }
  hash = call.count * kMix + uint64_t(uint32_t(call.root));
  hash ^= uint64_t(call.collective) << 40 | uint64_t(call.dtype) << 48 | uint64_t(call.op) << 56;
}

uint64_t SharedCall::stamp(uint32_t sequence, uint32_t call_index, MemorySpace space) const {
  const uint64_t mixed = (hash ^ uint64_t(space) << 62 ^ uint64_t{sequence} << 8) * kMix;
  return uint64_t{call_index + 1} << 32 | mixed >> 32;
}

std::string to_string(const Call& call, MemorySpace space) {
  return to_string(call) + (space == MemorySpace::kHost ? "" : " in device memory");
}

// Field by field: stores that are joined and copied wait for those before them.
void write_note(const Invocation& inv, SharedSlots& slots) {
  auto* const note = new (slots.notes[inv.index % SharedSlots::kLines]) Note;
  note->count = inv.call.count;
  note->sequence = inv.call.sequence;
  note->root = inv.call.root;
  note->collective = uint8_t(inv.call.collective);
  note->dtype = uint8_t(inv.call.dtype);
  note->op = uint8_t(inv.call.op);
  note->space = uint8_t(inv.space);
}

std::string read_note(const SharedSlots& slots, uint32_t call_index) {
  Note note;
  std::memcpy(&note, slots.notes[call_index % SharedSlots::kLines], sizeof note);
  return to_string({.collective = Collective(note.collective),
                    .dtype = DType(note.dtype),
                    .op = ReduceOp(note.op),
                    .count = note.count,
                    .root = note.root,
                    .sequence = note.sequence},
                   MemorySpace(note.space));
}

}  // namespace gxp
