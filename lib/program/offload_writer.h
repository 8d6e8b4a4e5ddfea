// Writes what a step does with offloaded memory: which part of a persistent buffer is offloaded,
// and how the optimizer works on that part in tiles. A tile is fetched, updated and stored; there
// are two, so that one is copied while the other is updated:
//
//   offload lane   fetch 0, fetch 1 | store 0, fetch 2 | store 1, fetch 3 | ...
//   compute lane                    | update 0         | update 1         | ...
//
// The optimizer's flat buffers all have optimizer_count() elements and the same tiles. Their first
// resident() elements stay on the device.
#pragma once

#include <string>
#include <vector>

#include "lib/program/program_writer.h"
#include "lib/program/step_inputs.h"

namespace gxp {

class OffloadWriter {
 public:
  OffloadWriter(ProgramWriter& writer, const StepInputs& inputs)
      : writer_(writer), inputs_(inputs), offload_(inputs.shape.offload) {}

  [[nodiscard]] bool offloads_optimizer() const { return offload_.optimizer != Storage::kDevice; }
  [[nodiscard]] bool offloads_parameters() const { return offload_.parameters != Storage::kDevice; }

  // Makes the buffer of `count` parameters, all of which may be offloaded.
  BufferId make_parameters(size_t count, DType dtype);
  // Makes a buffer of the optimizer, of `count` elements. Those from resident() on are
  // offloaded, unless an element has less than two bytes.
  BufferId make_optimizer_buffer(const std::string& name, size_t count, DType dtype);

  // Elements of the optimizer's flat buffers; callable once the program knows its optimizer_shards.
  [[nodiscard]] size_t optimizer_count() const;
  [[nodiscard]] size_t resident() const { return resident_of(optimizer_count()); }
  [[nodiscard]] int tile_count() const;
  [[nodiscard]] Range elements_of_tile(int tile) const;

  // Makes the tiles' buffers, and fetches what can be fetched before anything is updated.
  void prefetch_tiles();
  // Stores a tile that is updated, and fetches the next one into its buffers.
  void exchange_tile(int tile);
  [[nodiscard]] Tile tile_of(int number) const;
  void write_tile(Op& op, const Tile& tile);

  // Fetches `elements` of the parameters into a buffer `name`. Reads begin and end at whole blocks,
  // so the elements may begin within that buffer.
  FlatView fetch_parameters(int wrap, const Range& elements, const std::string& name);

 private:
  // Elements of a persistent buffer; the last `offloaded` of them lie in `storage`.
  struct FlatBuffer {
    MemoryKind kind;
    DType dtype;
    size_t count;
    Storage storage;
    size_t offloaded;
  };
  [[nodiscard]] size_t resident_of(size_t count) const;
  [[nodiscard]] size_t tile_elements() const;
  BufferId make_flat(const std::string& name, const FlatBuffer& flat);
  BufferId make_aligned(const std::string& name, MemoryKind kind, size_t bytes, DType dtype);
  Tile make_tile(size_t count);
  void fetch_tile(int tile);
  void move_tile(Op& op, int tile);
  void move(Op& op, const Move& move);

  ProgramWriter& writer_;
  const StepInputs& inputs_;
  const OffloadShape& offload_;
  std::vector<Tile> tiles_;
};

}  // namespace gxp
