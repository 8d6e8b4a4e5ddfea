// Arithmetic on tensors: one page per operation, one implementation per backend (kernels/cpu,
// kernels/cuda). Letters: B rows of a batch, T positions, C channels, H heads, D = C / H, V
// vocabulary, N = B * T tokens, M, K matrix sizes.
//
// For every operation:
//   Shapes     are asserted; a wrong one is a bug of the caller.
//   DTypes     f32, and bf16 or f16 (one of them in a program) wherever *, below, marks it.
//              Arithmetic is f32; a result is rounded once, to its tensor's type.
//              * parameters that are read; operands and outputs of matmul, but not `residual`; out
//              and dout of norms; inputs, outputs and their gradients of attention, activation
//              functions and rotations; logits; dout of bias_backward; StreamOutputs::rounded.
//   Threads    one at a time per Ops object; the CPU backend runs on its ThreadPool.
//   Order      sums have a fixed order for given shapes and thread count, on a GPU for given shapes
//              and its number of multiprocessors: same input, same bits, on GPUs of one model.
//   Aliasing   no output overlaps an input unless the operation says so.
//   Largest    a bf16 tensor may have a place for its largest |x| (Tensor::largest), one f32 that the
//              caller has cleared. An operation raises it to the largest |x| that it writes to `out`
//              of a norm's forward pass, convert() or attention, gradients of attention,
//              StreamOutputs::rounded, x of rotate(), or what an activation function writes; a
//              product in 8 bits takes it from there instead of reading the operand for it. For a
//              backend that multiplies codes; others leave the places alone.
//   Documents  a row may hold several documents, one behind the other. document_begin(B, T) i32 has, for
//              each position of a row, the position where its document begins. An operation that
//              takes it computes what it would for each document in a row of its own: position t is
//              position t - document_begin[t] of its document. Left out (empty): a row is one
//              document.
//   Gradients  of parameters are ADDED to their tensor (they accumulate over micro-batches and
//              uses); gradients of activations are stored. A parameter gradient of a norm or an
//              embedding may be left out: an empty tensor (memory.data == nullptr).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "kernels/attention_scores.h"
#include "kernels/math/dropout.h"
#include "kernels/math/float8_type.h"
#include "kernels/reduce_op.h"
#include "lib/base/decoder/activation.h"
#include "lib/base/decoder/rotary.h"
#include "lib/device/thread_pool.h"
#include "lib/tensor/tensor.h"

namespace gxp {

// The types (kernels/math/float8.h) to which the operands of a product are rounded: both of 8
// bits, not both e5m2; or none. Each tensor has one scale, from its values when it is multiplied.
// Operands are f32 or bf16; a tensor that holds a NaN or an infinity becomes NaNs. N is a multiple
// of 16; so is M where `a` is transposed, and K unless `a` is transposed and `b` is not. `out` and
// bias are not f16.
struct Float8Operands {
  Float8 a = Float8::kNone, b = Float8::kNone;
  auto operator<=>(const Float8Operands&) const = default;
};
// Those of a product in a forward pass.
constexpr Float8Operands operands_of_forward(bool float8) {
  return float8 ? Float8Operands{Float8::kE4M3, Float8::kE4M3} : Float8Operands{};
}
// Those of a product in a backward pass whose `a` is the gradient of an output.
constexpr Float8Operands operands_of_backward(bool float8) {
  return float8 ? Float8Operands{Float8::kE5M2, Float8::kE4M3} : Float8Operands{};
}

// A matrix of parameters' codes of 8 bits for a forward pass (e4m3), kept from one product to the
// next. For a backend that multiplies codes; others make what they need of the matrix.
struct KeptCodes {
  Tensor memory = {};  // u8, kept_code_bytes() in lib/arch/architecture.h; empty: none are kept
  bool makes = false;  // the product makes them; else an earlier one has, of the same numbers
};
struct MatmulOptions {
  bool transpose_a = false;   // a is stored (K, M)
  bool transpose_b = false;   // b is stored (N, K)
  bool accumulate = false;    // out += instead of out =
  ConstTensor bias = {};      // (N), added to every row; none if empty (memory.data == nullptr)
  ConstTensor residual = {};  // (M, N), added; may be `out` itself; none if empty
  Float8Operands float8 = {};
  KeptCodes b_codes = {};  // of b, in 8 bits
};

struct AdamWStep {
  double lr, beta1, beta2, eps, weight_decay;
  int64_t step;           // from 1, for the bias correction
  double gradient_scale;  // multiplied into the gradient first (clipping)
  double l2 = 0;          // times the weight, added to the gradient: Adam's weight decay
};

// momentum = kept * momentum + fresh * g; then direction = carried * momentum + ahead * g.
struct MomentumStep {
  double kept, fresh;             // weights in the new momentum: of the old one, of the gradient
  double carried = 1, ahead = 0;  // weights in the direction: of the new one, of the gradient
  double gradient_scale = 1;      // multiplied into the gradient first (clipping)
};

struct AdamWRange {
  Tensor weights, first, second;
  ConstTensor gradients;
  AdamWStep step;
  // For moments of fewer bits than f32's, as PackedAdamW (kernels/elementwise.h) has them.
  Tensor first_scales = {}, second_scales = {};
  RandomBits first_bits = {}, second_bits = {};
};

struct SgdStep {
  double lr, weight_decay;
  MomentumStep momentum;  // without an array of it: its gradient_scale alone
};

struct LionStep {
  double lr, beta1, beta2, weight_decay;
  double gradient_scale;  // multiplied into the gradient first (clipping)
};

// A linear layer and the GELU after it: x(N, M) = in(N, K) weight(K, M) + bias, which backward
// needs, and activated(N, M) = gelu(x). With half types a backend may take the GELU of x before it
// is rounded. x has the same bits where activated is left out (empty), and so has all that is
// recomputed from it.
struct LinearGelu {
  Tensor activated = {};
  Tensor x;
  ConstTensor in, weight, bias;
  bool float8 = false;   // in and weight are rounded to e4m3, as MatmulOptions has it
  KeptCodes codes = {};  // of the weight
};

// The parts of a linear layer's backward pass: dx's product; passes over the GELU, where they are
// not in a product; the gradients of the parameters.
enum class LinearPart { kInput, kActivation, kParameters };

// The backward pass of a linear layer, out(N, M) = in(N, K) weight(K, M) [+ bias], whose input may
// be a GELU's output.
struct LinearBackward {
  Tensor dx = {};       // (N, K), stored: the gradient of the input, or of the GELU's argument,
                        // whose `largest` is raised then
  Tensor dweight = {};  // (K, M) and (M), stored, or added if `accumulate`; each may be empty
  Tensor dbias = {};    // from dout before any rounding
  ConstTensor dout = {};
  Tensor in =
      {};  // if `of_gelu` the GELU's argument, which becomes its value unless that is given;
           // `largest` is the value's
  ConstTensor weight = {};
  bool of_gelu = false;
  Tensor activated = {};  // the value that linear_gelu made, read only; may be left out (empty)
  bool accumulate = false;
  bool outputs_first = false;  // weight and dweight are (M, K)
  bool add_dx = false;         // dx is added; not `of_gelu`
  bool float8 = false;   // dout is rounded to e5m2, in and weight to e4m3, as MatmulOptions has it
  KeptCodes codes = {};  // of the weight
  // For measurements: called before the kernels of each part are started; may be left out.
  std::function<void(LinearPart)> starts = {};
  void start(LinearPart part) const {
    if (starts) starts(part);
  }

  // What dweight is made from, after dx.
  [[nodiscard]] ConstTensor input() const {
    return activated.memory.data != nullptr ? activated : in;
  }
};

// What a layer that wrote into the residual stream takes of the stream's gradient x(N, C), f32. The
// pass that completes x makes both, so that x is not read again for it. Each may be empty.
struct StreamOutputs {
  Tensor rounded = {};  // (N, C), of a half type: x as convert() rounds it, for products
  Tensor column_sums =
      {};  // (C), ADDED: of x before it is rounded, the gradient of the layer's bias
};

// The weight of an RMS norm as it is multiplied: what is stored, or 1 + that (Gemma).
enum class RmsWeight { kStored, kPlusOne };

// The backward pass of a layer norm, or of an RMS norm, which has neither mean nor bias.
struct NormBackward {
  Tensor dx;            // (N, C), ADDED: it already holds the residual path's gradient
  Tensor dweight = {};  // (C), ADDED; dbias likewise; each may be empty
  Tensor dbias = {};
  ConstTensor dout;  // (N, C), the gradient of the norm's output
  ConstTensor x;     // (N, C), its input
  ConstTensor mean = {};
  ConstTensor rstd;         // (N), as forward has made them
  ConstTensor weight;       // (C)
  StreamOutputs also = {};  // of dx; `rounded` is of dout's type
  RmsWeight form = RmsWeight::kStored;
};

// Where the heads of attention lie in the rows of their arrays.
enum class HeadLayout {
  kSeparate,  // queries (B, T, H * D), keys and values (B, T, G * D), each in an array of its own
  kBlocks,    // in one array (B, T, (H + 2 G) * D): all queries, then all keys, then all values
  kPerHead,   // in one array (B, T, H * 3 * D): of each head its query, key and value; G = H
};

// Query head j reads head j / (H / G) of keys and values, and G divides H (Ainslie et al.,
// arXiv:2305.13245). With one array, the three are that array.
template <class AnyTensor>
struct GroupedHeads {
  AnyTensor queries, keys, values;
  int heads, kv_heads;  // H, G
  HeadLayout layout = HeadLayout::kSeparate;
};

// The heads that rotate() turns: `count` heads of `size` channels in each row of an array, the
// first from column `first` on, and each `stride` columns after the one before.
struct HeadColumns {
  size_t first, count, size, stride;
};

// The positions of the rows that rotate() turns: those from `first` on, of the row or, with
// `document_begin`, of each document.
struct RotatedPositions {
  size_t first = 0;
  ConstTensor document_begin = {};
};

struct ElementwiseCall;  // kernels/elementwise.h
struct PackedAdamW;      // likewise

class Ops {
 public:
  virtual ~Ops() = default;
  [[nodiscard]] virtual std::string description() const = 0;  // "cpu avx512, 2 threads"

  // out(M, N) = op(a)(M, K) op(b)(K, N) [+ bias] [+ residual] [+ out].
  virtual void matmul(Tensor out, ConstTensor a, ConstTensor b, const MatmulOptions& options) = 0;
  // The outputs of an x that is complete already. x is f32, or `rounded` is empty.
  virtual void round_and_sum(const StreamOutputs& out, ConstTensor x) = 0;
  // dbias(N) += column sums of dout(M, N).
  void bias_backward(Tensor dbias, ConstTensor dout) {
    round_and_sum({.column_sums = dbias}, dout);
  }
  // By default these call the operations around them; a backend may make fewer passes over memory.
  virtual void linear_gelu(const LinearGelu& layer);
  virtual void linear_backward(const LinearBackward& layer);

  // Ba, Kiros & Hinton, arXiv:1607.06450; biased variance, eps inside the root.
  // out(N, C) = (x - mean) * rstd * weight + bias; mean(N), rstd(N) are outputs.
  virtual void layernorm_forward(Tensor out, Tensor mean, Tensor rstd, ConstTensor x,
                                 ConstTensor weight, ConstTensor bias, float eps) = 0;
  // out as above from given statistics: backward needs it again if forward did not keep it.
  virtual void layernorm_apply(Tensor out, ConstTensor x, ConstTensor mean, ConstTensor rstd,
                               ConstTensor weight, ConstTensor bias) = 0;
  virtual void layernorm_backward(const NormBackward& norm) = 0;

  // RMS norm (Zhang & Sennrich, arXiv:1910.07467), eps inside the root.
  // rstd(N) = 1 / sqrt(mean of x^2 + eps), an output; out(N, C) = x * rstd * weight.
  virtual void rmsnorm_forward(Tensor out, Tensor rstd, ConstTensor x, ConstTensor weight,
                               float eps, RmsWeight form = RmsWeight::kStored) = 0;
  // out as above from a given rstd, with the same bits.
  virtual void rmsnorm_apply(Tensor out, ConstTensor x, ConstTensor rstd, ConstTensor weight,
                             RmsWeight form = RmsWeight::kStored) = 0;
  virtual void rmsnorm_backward(const NormBackward& norm) = 0;

  // Element-wise operations: all tensors have the same number of elements, in any shape. A backend
  // has one function for all of them, apply(); kernels/math/elementwise.h has their arithmetic.
  virtual void apply(const ElementwiseCall& call) = 0;
  // Many calls of one operation, with arrays of the same types: a GPU has a kernel for all of them.
  // By default each by apply().
  virtual void apply_all(std::span<const ElementwiseCall> calls);

  // An activation function (lib/base/decoder/activation.h). out may be x.
  void activation_forward(Activation kind, Tensor out, ConstTensor x);
  // One pass: activated = f(x) and dx = dout * f'(x). dx may be dout; activated may be x, or left
  // out (empty).
  void activation_backward(Activation kind, Tensor dx, Tensor activated, ConstTensor dout,
                           ConstTensor x);

  // A gated activation (Shazeer, arXiv:2002.05202): out = f(gate) * up. out may be either input.
  void gated_forward(Activation kind, Tensor out, ConstTensor gate, ConstTensor up);
  // One pass and in place: dout, gate, up become the forward pass's output, dgate and dup.
  void gated_backward(Activation kind, Tensor dout, Tensor gate, Tensor up);
  // Without the output: gate and up become dgate and dup.
  void gated_gradients(Activation kind, Tensor gate, Tensor up, ConstTensor dout);

  // out = factor * x, each of any of the three types. out may be x.
  void scale(Tensor out, ConstTensor x, float factor);
  // out = a + factor * b, each of any of the three types. out may be a or b.
  void add_scaled(Tensor out, ConstTensor a, ConstTensor b, float factor);
  // The cap of logits (Gemma 2, arXiv:2408.00118): out = cap * tanh(x / cap). out may be x.
  void cap_forward(Tensor out, ConstTensor x, float cap);
  // dx = dout * (1 - (capped / cap)^2), with what forward has made. dx may be dout.
  void cap_backward(Tensor dx, ConstTensor dout, ConstTensor capped, float cap);
  // out = a + b, each of any of the three types. out may be a or b.
  void add(Tensor out, ConstTensor a, ConstTensor b);
  void fill(Tensor out, float value);

  // Optimizers work on a flat range: weights and optimizer state (N) f32 are updated, gradients
  // (N), of any of the three types, are read, and an element's bits do not depend on how the range
  // is cut.
  //
  // AdamW (Loshchilov & Hutter, arXiv:1711.05101), decoupled decay first; with l2 for
  // weight_decay, Adam (Kingma & Ba, arXiv:1412.6980).
  void adamw(Tensor weights, Tensor first, Tensor second, ConstTensor gradients,
             const AdamWStep& step);
  // For ranges whose gradients have one type, and whose moments have one. Moments of bf16 are
  // rounded stochastically, so that what is small beside a moment is not lost; those of u8 are
  // codes and scales by blocks (Dettmers et al., arXiv:2110.02861), and a range begins with a block.
  void adamw(std::span<const AdamWRange> ranges);
  virtual void adamw_packed(std::span<const PackedAdamW> calls) = 0;
  // Gradient descent: g = gradient_scale * gradient + weight_decay * weight, weight -= lr *
  // direction, where the direction is that of MomentumStep, or g if `momentum` is empty
  // (memory.data == nullptr).
  void sgd(Tensor weights, Tensor momentum, ConstTensor gradients, const SgdStep& step);
  // Lion (Chen et al., arXiv:2302.06675): weight -= lr * (sign(beta1 * momentum + (1 - beta1) * g)
  // + weight_decay * weight), momentum = beta2 * momentum + (1 - beta2) * g.
  void lion(Tensor weights, Tensor momentum, ConstTensor gradients, const LionStep& step);
  // The direction alone, of MomentumStep. direction may be gradients, or momentum where the step
  // makes them the same (x = kept * x + fresh * y).
  void momentum(Tensor direction, Tensor momentum, ConstTensor gradients, const MomentumStep& step);

  // Rotary positions (lib/base/decoder/rotary.h) in the half-split form of Llama, in place, position 0
  // first: the heads of x(B, T, columns) turn. At most `size` channels of a head turn.
  void rope_forward(Tensor x, const HeadColumns& heads, const Rotary& rotary) {
    rotate(x, heads, rotary, 1.0f);
  }
  // Its gradient, in place: the same angles backwards, and the same factor.
  void rope_backward(Tensor dx, const HeadColumns& heads, const Rotary& rotary) {
    rotate(dx, heads, rotary, -1.0f);
  }
  // Both: `direction` times the angle.
  virtual void rotate(Tensor x, const HeadColumns& heads, const Rotary& rotary, float direction,
                      const RotatedPositions& positions = {}) = 0;

  // Causal self-attention; tiles with online softmax (Milakov & Gimelshein, arXiv:1805.02867; Dao,
  // arXiv:2307.08691), so T x T never exists for the batch. out(B, T, H * D). lse(B, H, T): log of
  // the softmax's denominator, kept for backward.
  // With half types a backend may round probabilities, and gradients of scores, to the tensors'
  // type before it multiplies with them.
  // A document that begins at a multiple of 64 positions of its row has the bits that it has in a row
  // of its own; the sums of others are added in another order. Other documents' numbers change no
  // bit of it if they are finite.
  virtual void attention_forward(Tensor out, Tensor lse, const GroupedHeads<ConstTensor>& in,
                                 const AttentionScores& scores = {},
                                 ConstTensor document_begin = {}) = 0;
  // The same for the last few positions: queries (B, T, ...) of the positions from `first` on, over
  // keys and values (B, P, ...) of the positions from 0 on, of which those behind the last query's
  // are not read. With one array, that of keys and values is another one than that of queries.
  virtual void attention_cached(Tensor out, const GroupedHeads<ConstTensor>& in, size_t first,
                                const AttentionScores& scores = {}) = 0;
  // `gradients` are stored, with the shapes and the layout of `in`; scratch(B, H, T) is overwritten
  // (row sums of dout * out).
  virtual void attention_backward(const GroupedHeads<Tensor>& gradients, Tensor scratch,
                                  ConstTensor dout, const GroupedHeads<ConstTensor>& in,
                                  ConstTensor out, ConstTensor lse,
                                  const AttentionScores& scores = {},
                                  ConstTensor document_begin = {}) = 0;

  // out(B, T, C) = token_table[tokens] + position_table[0 .. T). tokens(B, T) i32, all below V.
  // Without a table of positions (memory.data == nullptr) there is nothing to add, here and below.
  virtual void embedding_forward(Tensor out, ConstTensor tokens, ConstTensor token_table,
                                 ConstTensor position_table, ConstTensor document_begin = {}) = 0;
  // dtoken_table(V, C) and dposition_table(P >= T, C) +=, in the rows' order (deterministic). Of a
  // token's rows, and of a position's in documents, a backend may sum the second 256, the third and
  // so on first, and add these sums.
  // The rows of the token `padding` add nothing to its row; -1: all do.
  virtual void embedding_backward(Tensor dtoken_table, Tensor dposition_table, ConstTensor dout,
                                  ConstTensor tokens, int padding = -1,
                                  ConstTensor document_begin = {}) = 0;

  // Fused classifier: logits(N, V) become, in place, (softmax - onehot(target)) * scale.
  // losses(N) f32 = -log softmax(logits)[target]. targets(N) i32; a negative target counts as loss
  // 0, gradient 0.
  virtual void classifier(Tensor logits, Tensor losses, ConstTensor targets, float scale) = 0;
  // losses only; logits are left alone.
  virtual void classifier_loss(Tensor losses, ConstTensor logits, ConstTensor targets) = 0;

  // Sums of squares of each row (R) and of each column (C) of x(R, C), in f64; none where the
  // tensor is empty.
  virtual void sums_of_squares(Tensor of_rows, Tensor of_columns, ConstTensor x) = 0;
  // out(R, C) = x * rows(R) * columns(C), f32. out may be x.
  virtual void scale_rows_and_columns(Tensor out, ConstTensor x, ConstTensor rows,
                                      ConstTensor columns) = 0;
  // Sum of squares in f64 over a fixed tree that depends on the count alone, not on the thread
  // count. x of any of the three types.
  virtual double sum_of_squares(ConstTensor x) = 0;
  // total (one f64) += sum_of_squares(x); does not wait for the result.
  virtual void add_sum_of_squares(Tensor total, ConstTensor x) = 0;
  // Sum in f64, the same way.
  virtual double sum(ConstTensor x) = 0;
  // 64 bits of the memory of all `parts`, one after the other, each cut into words of 8 bytes: if one
  // word differs, so does the result; if several do, it is the same by a chance of about 2^-64. The
  // same on every backend. Waits for the result.
  virtual uint64_t fingerprint(std::span<const ConstTensor> parts) = 0;
  // out = x, of any two of f32, bf16 and f16.
  virtual void convert(Tensor out, ConstTensor x) = 0;
  // out (bf16) = x (f32), each element rounded up or down so that it is right on average, by random
  // bits that depend on nothing but `bits` and the element's number (kernels/math/stochastic.h).
  virtual void round_stochastically(Tensor out, ConstTensor x, const RandomBits& bits) = 0;
  // out = x, each element dropped out or scaled up (kernels/math/dropout.h), of any one of the three
  // types. out may be x.
  virtual void drop_out(Tensor out, ConstTensor x, const Dropout& dropout) = 0;
};

// Runs on `pool`, which must outlive it. The instruction set (avx512, avx2 or the compiler's
// baseline) is chosen by what this CPU has; `isa` names one instead ("": the best), and
// `bf16_products` a kernel (kernels/cpu/gemm/gemm_choice.h); throws kUnavailable if it is unknown
// or this CPU lacks it.
std::unique_ptr<Ops> make_cpu_ops(ThreadPool& pool, const std::string& isa = "",
                                  const std::string& bf16_products = "");

}  // namespace gxp
