// The weights and the optimizer state that this rank holds, by tensor, on the device or offloaded:
// what checkpoints and weight files read and write between steps.
#pragma once

#include <functional>
#include <vector>

#include "lib/zero/parameters.h"

namespace gxp {

// The elements that a rank holds of one tensor: weights, or one kind of optimizer state. Flat;
// weights are read and written as f32: the master weights where the model reads rounded ones.
struct HeldTensor {
  const TensorSpec* spec = nullptr;
  const KeptState* state = nullptr;  // null: the weights
  std::vector<size_t> shape;         // of the whole tensor or state
  Range elements;                    // of the whole
  bool everywhere = false;           // every rank holds these elements
  int wrap = -1;
  BufferId buffer = kNoBuffer;
  size_t begin = 0;    // in the buffer, some of which may be offloaded
  size_t in_own = 0;   // of weights: in this rank's shard of their FSDP unit (Parameters::own)
  bool alone = false;  // no other rank holds these elements, not even a replica

  [[nodiscard]] DType dtype() const { return state == nullptr ? DType::kF32 : state->dtype; }
};

class HeldState {
 public:
  // Both outlive it.
  HeldState(ShardedMemory& sharded, Parameters& parameters)
      : sharded_(sharded), parameters_(parameters) {}

  // In forward order: every tensor, or this rank's shard of each. All ranks together hold all.
  [[nodiscard]] std::vector<HeldTensor> weights() const;
  // The optimizer state, likewise.
  [[nodiscard]] std::vector<HeldTensor> kept() const;
  // The parts of the codec's residuals, which are kept like optimizer state, one copy per host: the
  // shape is that of the tensor behind the number of hosts.
  [[nodiscard]] std::vector<HeldTensor> residuals() const;
  // The part of the held elements that this rank saves: ranks that hold the same ones divide them.
  // Counted from the first held element.
  [[nodiscard]] Range own_share(const HeldTensor& tensor) const;

  // Copy held elements from number `first` on, counted from the first held one.
  void read(const HeldTensor& tensor, size_t first, Memory out) const;
  // Offloaded weights are rounded here, and those that have no f32 master weights, for step
  // ShardedMemory::steps + 1: what is frozen, and all of a run that makes no steps.
  void write(const HeldTensor& tensor, size_t first, ConstMemory in);
  // Sets all residuals to zero: nothing is pending.
  void clear_residuals();
  // The number of this rank's host.
  [[nodiscard]] int host() const { return sharded_.compressed.host(); }
  // Calls `fill` for each tensor of weights(), to write all of its elements.
  void fill_weights(const std::function<void(const HeldTensor&, const Tensor& weight)>& fill);

 private:
  // Whether there are no master weights behind weights of a half type.
  [[nodiscard]] bool are_halves(const HeldTensor& tensor) const {
    return tensor.state == nullptr && tensor.buffer == sharded_.program.parameters &&
           sharded_.plan.architecture.compute != DType::kF32;
  }

  ShardedMemory& sharded_;
  Parameters& parameters_;
};

}  // namespace gxp
