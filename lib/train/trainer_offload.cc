// What of the trainer's state lies beside the device: it is fetched, stored and rounded.
#include <algorithm>

#include "lib/train/trainer.h"

namespace gxp {
namespace {

constexpr size_t kStagedElements = size_t{1} << 20;  // rounded at a time

}  // namespace

// A skipped step changes nothing, so it stores nothing. It fetches all the same: fetches may run
// before the step is known to be skipped.
std::function<void()> Trainer::bind_offload(const Op& op) {
  uint64_t bytes = 0;
  for (const Move& move : op.moves) bytes += move.bytes;
  return [this, bytes, stores = op.kind == OpKind::kStore,
          copy = offloaded_->bind(op, plan_.step.program, *memory_)] {
    if (stores && result_.skipped) return;
    copy();
    result_.offload_bytes += bytes;
  };
}

// Rounds all parameters of this rank, from master weights that were changed between steps.
void Trainer::round_offloaded() {
  const StepProgram& program = plan_.step.program;
  std::vector<float> staged(kStagedElements);
  std::vector<uint16_t> halves(kStagedElements);
  for (const TensorPart& part : own_parts_) {
    const int wrap = plan_.layout.wrap_of[size_t(part.unit)];
    const size_t begin =
        ShardPlaces::of_parameters(plan_.layout, program.optimizer_shards).part(part).begin;
    const size_t place =
        ShardPlaces::of_parameters(plan_.layout, program.optimizer_shards).wrap(wrap).begin;
    for (size_t done = 0; done < part.elements.count; done += kStagedElements) {
      const Range piece{begin + done, std::min(kStagedElements, part.elements.count - done)};
      const Tensor from(memory_of(staged).slice(0, piece.count * sizeof(float)), DType::kF32,
                        Shape{piece.count});
      const Tensor to(memory_of(halves).slice(0, piece.count * sizeof(uint16_t)),
                      plan_.architecture.compute, Shape{piece.count});
      offloaded_->read(program.master_weights, piece, from.memory);
      host_rounding_.round(to, from, spec_of(part), part.elements.begin + done, step_ + 1);
      if (plan_.shape.offload.parameters != Storage::kDevice)
        offloaded_->write(program.parameters, piece, to.memory);
      else
        backend_.device->copy(own_parameters(wrap).rows(piece.begin - place, piece.count).memory,
                              to.memory);
    }
  }
  unrounded_ = false;
}

}  // namespace gxp
