// The weights and the optimizer state that this rank holds, tensor by tensor, wherever they lie:
// as checkpoints and weight files see them, between steps.
#pragma once

#include <functional>
#include <vector>

#include "lib/zero/parameters.h"

namespace gxp {

// What a rank holds of one tensor: of its weights, or of what the optimizer keeps of it. Flat, f32;
// weights are the master weights where the model reads rounded ones.
struct HeldTensor {
  const TensorSpec* spec = nullptr;
  const KeptState* state = nullptr;  // null: the weights
  std::vector<size_t> shape;         // of all of it
  Range elements;                    // of that
  bool everywhere = false;           // every rank holds these elements
  int wrap = -1;
  BufferId buffer = kNoBuffer;
  size_t begin = 0;  // in the buffer, some of which may be offloaded
};

class HeldState {
 public:
  // Both outlive it.
  HeldState(ShardedMemory& held, Parameters& parameters) : held_(held), parameters_(parameters) {}

  // In forward order: every tensor, or this rank's shard of each. All ranks together hold all.
  [[nodiscard]] std::vector<HeldTensor> weights() const;
  // The optimizer state, likewise.
  [[nodiscard]] std::vector<HeldTensor> kept() const;
  // The elements, counted from the first held one, for which this rank stands: the ranks that hold
  // the same share them out.
  [[nodiscard]] Range own_share(const HeldTensor& tensor) const;

  // Elements from `first` on, counted from the first held one.
  void read(const HeldTensor& tensor, size_t first, Memory out) const;
  // The next step is then number ShardedMemory::steps + 1: weights may be rounded for it here.
  void write(const HeldTensor& tensor, size_t first, ConstMemory in);
  // Has `fill` write all elements of each tensor of weights().
  void fill_weights(const std::function<void(const HeldTensor&, const Tensor& weight)>& fill);

 private:
  ShardedMemory& held_;
  Parameters& parameters_;
};

}  // namespace gxp
