// Forward and backward of a model, unit by unit, hand-derived, over kernels/ops.h. The step program
// says when each unit runs and where its memory lies; a Model holds no tensor and no state.
//
// Letters: B rows, T positions, C hidden, H heads, V vocabulary, N = B * T tokens.
//   Threads  as the Ops it was made with.
//   Errors   none of its own; shapes that do not fit are bugs (GXP_ASSERT).
#pragma once

#include <memory>
#include <vector>

#include "kernels/ops.h"
#include "lib/arch/architecture.h"
#include "lib/arch/recompute.h"
#include "lib/model/views.h"

namespace gxp {

// What the random numbers of dropout depend on: a key of the unit, and the number in the run of the
// first token, which changes from call to call; null: nothing is dropped.
struct AdapterDropout {
  uint64_t key = 0;
  const uint64_t* first_token = nullptr;
};

// The memory of one operation of the step program on one unit. Tensors that the operation does not
// use are empty.
struct UnitTensors {
  std::vector<Tensor> parameters;  // of the unit, in the order and shapes of UnitSpec::tensors
  std::vector<Tensor> gradients;   // the same, of their gradients; empty of frozen tensors
  bool accumulate = false;         // gradients are added to what is there, else stored
  Tensor borrowed;                 // the tensor that a tied head reads, and its gradient
  Tensor borrowed_gradient;
  Tensor codes;  // the KeptCodes of all matrices, one after the other; empty: not kept
  bool makes_codes = false;
  AdapterDropout dropout;
  Tensor largest;               // f32, of UnitSpec::operands; empty: products are not in 8 bits
  std::vector<Tensor> saved;    // flat, in the order of UnitSpec::saved
  std::vector<Tensor> scratch;  // flat, in the order of the unit's scratch list
  Tensor tokens;                // (B, T) i32
  Tensor targets;               // (B, T) i32; negative: not counted
  Tensor document_begin;        // (B, T) i32, as kernels/ops.h has it; not in extend()
  Tensor losses;                // (N), one loss per token
  Tensor input;                 // (B, T, C), the residual stream before the unit
  Tensor output;                // (B, T, C), the residual stream after it; of logits(): (B, V)
  Tensor stream_gradient;  // (B, T, C), with respect to the stream after the unit, replaced by that
                           // before it

  // The tensor with its Tensor::largest, if the operation has a place for it.
  [[nodiscard]] Tensor operand(const Tensor& x, size_t which) const {
    if (largest.memory.data == nullptr) return x;
    GXP_ASSERT(which < largest.count());
    return x.with_largest(reinterpret_cast<float*>(largest.memory.data) + which);
  }
};

// The keys and values of one row's positions in a block, as attention reads them: (1, P,
// Decoder::cached_channels()) each, of the type of products' operands. Where one product makes
// queries, keys and values, both are the array of all three: a row is stored as it is made.
struct KeyValueCache {
  Tensor keys, values;
};

class Model {
 public:
  virtual ~Model() = default;
  // Any unit but the head.
  virtual void forward(int unit, const UnitTensors& t) = 0;
  // forward() of the positions from `first` on, of one row, behind those that `past` has already: a
  // block adds its keys and values to it. The embedding has no use for it.
  virtual void extend(int unit, const UnitTensors& t, const KeyValueCache& past, size_t first) = 0;
  // The head's forward and backward: losses, stream_gradient, gradients. The loss that is
  // differentiated is `scale` times the sum of the losses.
  virtual void loss(const UnitTensors& t, float scale) = 0;
  // Computes the tensors of `saved` that `what` does not keep again, to forward's bits, from the
  // others. Units with saved activations only.
  virtual void recompute(int unit, const UnitTensors& t, Recompute what) = 0;
  // Any unit but the head. The embedding adds to the token table's gradient in any case: a tied
  // head has stored its part there before.
  virtual void backward(int unit, const UnitTensors& t) = 0;
  // The head's forward alone.
  virtual void evaluate_loss(const UnitTensors& t) = 0;
  // The logits of the last position of each row.
  virtual void logits(const UnitTensors& t) = 0;
};

// `ops` must outlive the model.
std::unique_ptr<Model> make_model(const Architecture& architecture, Ops& ops);

}  // namespace gxp
