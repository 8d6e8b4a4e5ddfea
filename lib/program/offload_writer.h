// What a step program does with memory that is kept beside the device: which part of a buffer that
// is, and how the optimizer works on it in tiles: fetched, updated, stored, two at a time, so that
// one is on its way while the other is worked on.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/program/activation_writer.h"
#include "lib/program/build.h"

namespace gxp {

class OffloadWriter : protected ActivationWriter {
 protected:
  OffloadWriter(const StepShape& shape, std::vector<Recompute> recompute)
      : ActivationWriter(shape.rows * shape.positions, std::move(recompute)),
        offload_(shape.offload) {}

  [[nodiscard]] bool offloads_optimizer() const { return offload_.optimizer != Storage::kDevice; }
  [[nodiscard]] bool offloads_parameters() const { return offload_.parameters != Storage::kDevice; }

  // A persistent buffer of `count` elements. If `storage` is not the device, the last `offloaded`
  // of them lie there.
  BufferId flat_buffer(const std::string& name, MemoryKind kind, size_t count, DType dtype,
                       Storage storage, size_t offloaded) {
    if (storage == Storage::kDevice) return persistent(name, kind, count * size_of(dtype), dtype);
    const BufferId id = persistent(name, kind, (count - offloaded) * size_of(dtype), dtype);
    const size_t bytes = round_up(offloaded * size_of(dtype), kOffloadAlignment);
    const BufferId rest = persistent(name + ", offloaded", kind, bytes, dtype);
    program_.buffers[size_t(id)].rest = rest;
    BufferSpec& buffer = program_.buffers[size_t(rest)];
    buffer.storage = storage;
    buffer.offset = program_.offloaded_bytes[size_t(storage)];
    program_.offloaded_bytes[size_t(storage)] += bytes;
    return id;
  }

  // Of the optimizer, which keeps `count` elements of each of its buffers.
  BufferId optimizer_buffer(const std::string& name, size_t count) {
    return flat_buffer(name, MemoryKind::kOptimizer, count, DType::kF32, offload_.optimizer,
                       count - resident(count));
  }
  // How many of them stay on the device.
  [[nodiscard]] size_t resident(size_t count) const {
    if (!offloads_optimizer()) return count;
    return size_t(double(count) * (1 - offload_.ratio)) / kTileAlignment * kTileAlignment;
  }

  // The tiles of the optimizer's buffers of `count` elements.
  [[nodiscard]] int tile_count(size_t count) const {
    return int((count - resident(count) + tile_elements() - 1) / tile_elements());
  }
  [[nodiscard]] Range elements_of_tile(size_t count, int tile) const {
    const size_t begin = resident(count) + size_t(tile) * tile_elements();
    return {begin, std::min(tile_elements(), count - begin)};
  }

  // The parts that can be fetched before anything is updated.
  void prefetch_tiles(size_t count) {
    for (int tile = 0; tile < std::min(kTileBuffers, tile_count(count)); ++tile) {
      tiles_.push_back(make_tile(std::min(tile_elements(), count - resident(count))));
      fetch_tile(count, tile);
    }
  }
  void fetch_tile(size_t count, int tile) {
    if (tile >= tile_count(count)) return;
    Op& op = emit(OpKind::kFetch, Lane::kOffload, -1, -1);
    move_tile(op, elements_of_tile(count, tile), tile_of(tile));
  }
  void store_tile(size_t count, int tile) {
    Op& op = emit(OpKind::kStore, Lane::kOffload, -1, -1);
    move_tile(op, elements_of_tile(count, tile), tile_of(tile));
  }
  [[nodiscard]] Tile tile_of(int number) const {
    Tile tile = tiles_[size_t(number % kTileBuffers)];
    tile.number = number;
    return tile;
  }
  void write_tile(Op& op, const Tile& tile) {
    for (const BufferId id : tile.states) write(op, id);
    if (tile.weights != kNoBuffer) write(op, tile.weights);
    if (tile.parameters != kNoBuffer) write(op, tile.parameters);
  }

  // `elements` of the parameters, from where they are kept. What is read begins and ends on whole
  // blocks, so they may begin within the buffer.
  FlatView fetch_parameters(int wrap, const Range& elements, const std::string& name) {
    const BufferSpec& parameters = program_.buffers[size_t(program_.parameters)];
    const size_t size = size_of(parameters.dtype);
    const size_t begin = elements.begin * size / kOffloadAlignment * kOffloadAlignment;
    const size_t end = round_up(elements.end() * size, kOffloadAlignment);
    const DType dtype = parameters.dtype;
    const BufferId rest = parameters.rest;
    const BufferId id = aligned_buffer(name, MemoryKind::kParameters, end - begin, dtype);
    Op& op = emit_on_wrap(OpKind::kFetch, Lane::kOffload, wrap);
    move(op, {rest, begin, id, end - begin});
    return {id, elements.begin - begin / size};
  }

  static constexpr int kTileBuffers = 2;

 private:
  static constexpr size_t kTileAlignment = kOffloadAlignment / 2;  // elements: of halves, too

  [[nodiscard]] size_t tile_elements() const { return round_up(offload_.tile, kTileAlignment); }

  BufferId aligned_buffer(const std::string& name, MemoryKind kind, size_t bytes, DType dtype) {
    const BufferId id = buffer(name, kind, bytes, dtype);
    program_.buffers[size_t(id)].alignment = kOffloadAlignment;
    return id;
  }

  Tile make_tile(size_t count) {
    const auto tile_of_buffer = [&](BufferId id) {
      const BufferSpec spec = program_.buffers[size_t(id)];
      if (spec.rest == kNoBuffer) return kNoBuffer;
      const size_t bytes = round_up(count * size_of(spec.dtype), kOffloadAlignment);
      return aligned_buffer("tile of " + spec.name, spec.kind, bytes, spec.dtype);
    };
    Tile tile;
    for (const BufferId id : program_.optimizer_states) tile.states.push_back(tile_of_buffer(id));
    tile.weights = tile_of_buffer(program_.weights());
    if (program_.master_weights != kNoBuffer) tile.parameters = tile_of_buffer(program_.parameters);
    return tile;
  }

  // Rounded parameters are made anew in each step, so nobody fetches them.
  void move_tile(Op& op, const Range& elements, const Tile& tile) {
    op.tile = tile;
    const auto move_part = [&](BufferId flat, BufferId part) {
      if (part == kNoBuffer) return;
      const BufferSpec& spec = program_.buffers[size_t(flat)];
      const size_t size = size_of(spec.dtype);
      move(op, {spec.rest, elements.begin * size - spec.bytes, part,
                round_up(elements.count * size, kOffloadAlignment)});
    };
    for (size_t i = 0; i < tile.states.size(); ++i)
      move_part(program_.optimizer_states[i], tile.states[i]);
    move_part(program_.weights(), tile.weights);
    if (op.kind == OpKind::kStore) move_part(program_.parameters, tile.parameters);
  }

  void move(Op& op, const Move& move) {
    const bool fetches = op.kind == OpKind::kFetch;
    op.moves.push_back(move);
    op.uses.push_back({move.offloaded, {move.from, move.bytes}, !fetches});
    op.uses.push_back({move.buffer, {0, move.bytes}, fetches});
  }

  const OffloadShape offload_;
  std::vector<Tile> tiles_;
};

}  // namespace gxp
