// The weights and the optimizer state that this rank holds, tensor by tensor, wherever they lie:
// as checkpoints and weight files see them, between steps.
#pragma once

#include <functional>
#include <vector>

#include "lib/zero/parameters.h"
#include "lib/zero/sharded_memory.h"

namespace gxp {

// Elements of one of the optimizer's f32 buffers, on the device or beside it.
struct HeldRange {
  BufferId buffer = kNoBuffer;
  Range elements;
};

// What a rank holds of one logical tensor: all of it, or the part in its shard. Flat; weights are
// f32: the master weights where the model reads rounded ones.
struct StateTensor {
  const TensorSpec* spec = nullptr;
  Range elements;  // of the tensor
  HeldRange weight_at;
  Tensor weight;  // empty where some of it is offloaded
  // The last step's gradient, summed over the ranks, not clipped, times the step's loss_scale, in
  // the type in which gradients are kept. Empty for a frozen tensor.
  Tensor gradient;
};

// What a rank holds of one kind of optimizer state of one tensor.
struct KeptTensor {
  const TensorSpec* spec = nullptr;
  const KeptState* state = nullptr;
  std::vector<size_t> shape;  // of all of it
  Range elements;             // of that
  HeldRange at;
  bool everywhere = false;  // every rank holds these elements
};

class HeldState {
 public:
  // Both outlive it.
  HeldState(ShardedMemory& held, Parameters& parameters) : held_(held), parameters_(parameters) {}

  // In forward order, to be read or overwritten: every tensor, or this rank's shard of each. All
  // ranks together hold all.
  [[nodiscard]] std::vector<StateTensor> weights() const;
  // The optimizer state, likewise.
  [[nodiscard]] std::vector<KeptTensor> kept() const;
  // The elements of a tensor of `count` for which this rank stands: the ranks that hold the same
  // share them out.
  [[nodiscard]] Range own_share(size_t count) const;

  // What these name, wherever it lies.
  void read(const HeldRange& at, Memory out) const;
  void write(const HeldRange& at, ConstMemory in);
  // Has `fill` write the elements of each tensor of weights().
  void fill_weights(const std::function<void(const StateTensor&, const Tensor& weight)>& fill);

 private:
  ShardedMemory& held_;
  Parameters& parameters_;
};

}  // namespace gxp
