#include "lib/program/offload_writer.h"

#include <algorithm>

#include "lib/base/bytes.h"

namespace gxp {
namespace {

constexpr int kTileBuffers = 2;
constexpr size_t kTileAlignment = kOffloadAlignment / 2;  // elements: a whole block of halves, too
static_assert(kFrozenAlignment % kTileAlignment == 0);    // a tile's last block has nothing frozen

}  // namespace

BufferId OffloadWriter::make_parameters(size_t count, DType dtype) {
  return make_flat("parameters", {.kind = MemoryKind::kParameters,
                                  .dtype = dtype,
                                  .count = count,
                                  .storage = offload_.parameters,
                                  .offloaded = count});
}

BufferId OffloadWriter::make_optimizer_buffer(const std::string& name, size_t count, DType dtype) {
  return make_flat(name, {.kind = MemoryKind::kOptimizer,
                          .dtype = dtype,
                          .count = count,
                          .storage = offload_.optimizer,
                          .offloaded = count - resident_of(count)});
}

BufferId OffloadWriter::make_flat(const std::string& name, const FlatBuffer& flat) {
  const size_t size = size_of(flat.dtype);
  if (flat.storage == Storage::kDevice)
    return writer_.persistent(name, flat.kind, flat.count * size, flat.dtype);
  const BufferId id =
      writer_.persistent(name, flat.kind, (flat.count - flat.offloaded) * size, flat.dtype);
  const size_t bytes = round_up(flat.offloaded * size, kOffloadAlignment);
  const BufferId rest = writer_.persistent(name + ", offloaded", flat.kind, bytes, flat.dtype);
  writer_.spec(id).rest = rest;
  uint64_t& stored = writer_.program.offloaded_bytes[size_t(flat.storage)];
  writer_.spec(rest).storage = flat.storage;
  writer_.spec(rest).offset = stored;
  stored += bytes;
  return id;
}

BufferId OffloadWriter::make_aligned(const std::string& name, MemoryKind kind, size_t bytes,
                                     DType dtype) {
  const BufferId id = writer_.buffer(name, kind, bytes, dtype);
  writer_.spec(id).alignment = kOffloadAlignment;
  return id;
}

size_t OffloadWriter::optimizer_count() const {
  return inputs_.layout.trained_count / size_t(writer_.program.optimizer_shards);
}

size_t OffloadWriter::resident_of(size_t count) const {
  if (!offloads_optimizer()) return count;
  return size_t(double(count) * (1 - offload_.ratio)) / kTileAlignment * kTileAlignment;
}

size_t OffloadWriter::tile_elements() const { return round_up(offload_.tile, kTileAlignment); }

int OffloadWriter::tile_count() const {
  return int((optimizer_count() - resident() + tile_elements() - 1) / tile_elements());
}

Range OffloadWriter::elements_of_tile(int tile) const {
  const size_t begin = resident() + size_t(tile) * tile_elements();
  return {begin, std::min(tile_elements(), optimizer_count() - begin)};
}

void OffloadWriter::prefetch_tiles() {
  for (int tile = 0; tile < std::min(kTileBuffers, tile_count()); ++tile) {
    tiles_.push_back(make_tile(std::min(tile_elements(), optimizer_count() - resident())));
    fetch_tile(tile);
  }
}

void OffloadWriter::exchange_tile(int tile) {
  move_tile(writer_.emit(OpKind::kStore, Lane::kOffload), tile);
  fetch_tile(tile + kTileBuffers);
}

void OffloadWriter::fetch_tile(int tile) {
  if (tile < tile_count()) move_tile(writer_.emit(OpKind::kFetch, Lane::kOffload), tile);
}

Tile OffloadWriter::tile_of(int number) const {
  Tile tile = tiles_[size_t(number % kTileBuffers)];
  tile.number = number;
  return tile;
}

void OffloadWriter::write_tile(Op& op, const Tile& tile) {
  for (const BufferId id : tile.states) writer_.write(op, id);
  if (tile.weights != kNoBuffer) writer_.write(op, tile.weights);
  if (tile.parameters != kNoBuffer) writer_.write(op, tile.parameters);
}

Tile OffloadWriter::make_tile(size_t count) {
  const StepProgram& program = writer_.program;
  const auto tile_of_buffer = [&](BufferId id) {
    const BufferSpec spec = writer_.spec(id);  // a copy: making a buffer moves the others
    if (spec.rest == kNoBuffer) return kNoBuffer;
    const size_t bytes = round_up(count * size_of(spec.dtype), kOffloadAlignment);
    return make_aligned("tile of " + spec.name, spec.kind, bytes, spec.dtype);
  };
  Tile tile;
  for (const BufferId id : program.optimizer_states) tile.states.push_back(tile_of_buffer(id));
  tile.weights = tile_of_buffer(program.weights());
  if (program.master_weights != kNoBuffer) tile.parameters = tile_of_buffer(program.parameters);
  return tile;
}

// Rounded parameters are made anew in each step, so they are not fetched.
void OffloadWriter::move_tile(Op& op, int number) {
  const StepProgram& program = writer_.program;
  const Range elements = elements_of_tile(number);
  const Tile& tile = op.update.tile = tile_of(number);
  const auto move_part = [&](BufferId flat, BufferId part) {
    if (part == kNoBuffer) return;
    const BufferSpec& spec = writer_.spec(flat);
    const size_t size = size_of(spec.dtype);
    move(op, {spec.rest, elements.begin * size - spec.bytes, part,
              round_up(elements.count * size, kOffloadAlignment)});
  };
  for (size_t i = 0; i < tile.states.size(); ++i)
    move_part(program.optimizer_states[i], tile.states[i]);
  move_part(program.weights(), tile.weights);
  if (op.kind == OpKind::kStore) move_part(program.parameters, tile.parameters);
}

FlatView OffloadWriter::fetch_parameters(int wrap, const Range& elements, const std::string& name) {
  const BufferSpec parameters = writer_.spec(writer_.program.parameters);
  const size_t size = size_of(parameters.dtype);
  const size_t begin = elements.begin * size / kOffloadAlignment * kOffloadAlignment;
  const size_t end = round_up(elements.end() * size, kOffloadAlignment);
  const BufferId id = make_aligned(name, MemoryKind::kParameters, end - begin, parameters.dtype);
  Op& op = writer_.emit_on_wrap(OpKind::kFetch, Lane::kOffload, wrap);
  move(op, {parameters.rest, begin, id, end - begin});
  return {id, elements.begin - begin / size};
}

void OffloadWriter::move(Op& op, const Move& move) {
  const bool fetches = op.kind == OpKind::kFetch;
  op.moves.push_back(move);
  op.uses.push_back({move.offloaded, {move.from, move.bytes}, !fetches});
  op.uses.push_back({move.buffer, {0, move.bytes}, fetches});
}

}  // namespace gxp
