// Writes how a step ends: the gradients' norm, clipping, and the optimizer.
//
//   Order   make_buffers() before all operations; then measure_gradients(), clip_gradients(),
//           update(), after the OffloadWriter's prefetch_tiles(); update_whole() for each FSDP
//           unit.
#pragma once

#include "lib/program/offload_writer.h"

namespace gxp {

class UpdateWriter {
 public:
  UpdateWriter(ProgramWriter& writer, const StepInputs& inputs, OffloadWriter& offload)
      : writer_(writer), inputs_(inputs), offload_(offload) {}

  // Makes the master weights, the optimizer's state and the norm's parts; once the program knows
  // its optimizer_shards.
  void make_buffers();

  // Emits the sums of squares that this rank computes and, where gradients are sharded, their
  // exchange among the ranks.
  void measure_gradients();
  void clip_gradients();
  // Updates the tensors of which the optimizer takes ranges: first the part that stays on the
  // device, while the first tiles are fetched; then tile by tile.
  void update();
  // Updates the FSDP unit's tensors that the optimizer needs whole: each rank computes its part of
  // their directions, gathers the other parts, and changes its own shard.
  void update_whole(int wrap);

 private:
  void update_elements(const Range& elements, const Tile& tile);
  // Bytes that the optimizer works with on the largest of the FSDP unit's tensors that it sees
  // whole; 0: there is none.
  [[nodiscard]] size_t workspace_of(int wrap) const;
  void gather_directions(int wrap, RankGroup group, BufferId directions);

  ProgramWriter& writer_;
  const StepInputs& inputs_;
  OffloadWriter& offload_;
};

}  // namespace gxp
