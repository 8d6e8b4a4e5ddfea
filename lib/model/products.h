// The products of a block with its matrices, wherever these are stored (MatrixPlace).
#pragma once

#include "kernels/ops.h"
#include "lib/arch/decoder.h"
#include "lib/base/hash.h"
#include "lib/model/model.h"

namespace gxp {

class Products {
 public:
  Products(const Decoder& decoder, bool float8, Ops& ops)
      : ops_(ops),
        outputs_first_(!decoder.kind.inputs_first),
        float8_(float8),
        adapters_(decoder.adapters),
        factor_(decoder.adapter_factor),
        dropout_(decoder.adapter_dropout),
        gradient_(decoder.backward_scratch[BlockScratch::kAdaptedGradient]) {}

  // y = x W + bias [+ residual], for x(N, inputs) and y(N, outputs).
  void apply(const Tensor& y, const Tensor& x, const MatrixPlace& at, const UnitTensors& t,
             const ConstTensor& residual = {}) {
    ops_.matmul(y, x, weight(at, t),
                {.transpose_b = outputs_first_,
                 .bias = vector_of(at.bias, t.parameters),
                 .residual = residual,
                 .float8 = operands_of_forward(float8_),
                 .b_codes = codes(at, t)});
    if (at.adapter < 0) return;
    const Tensor h = adapt(at.is_first ? dropped(x, at, t) : x, at, t);
    ops_.matmul(y, h, second_of(at, t.parameters), {.transpose_b = true, .accumulate = true});
  }

  // A linear layer's backward pass, but for its bias.
  [[nodiscard]] LinearBackward layer(const MatrixPlace& at, const UnitTensors& t) const {
    return {.dweight = gradient(at, t),
            .weight = weight(at, t),
            .accumulate = t.accumulate,
            .outputs_first = outputs_first_,
            .float8 = float8_,
            .codes = codes(at, t)};
  }

  // dx = dy W^T, or added to dx, and the gradients of the matrix and its bias.
  void backward(const Tensor& dx, const Tensor& dy, const Tensor& x, const MatrixPlace& at,
                const UnitTensors& t, bool add_dx = false) {
    LinearBackward pass = layer(at, t);
    pass.dx = dx;
    pass.dbias = vector_of(at.bias, t.gradients);
    pass.dout = dy;
    pass.in = x;
    pass.add_dx = add_dx;
    ops_.linear_backward(pass);
    adapter_input_backward(dx, dy, at, t);
    adapter_weight_backward(dy, x, at, t);
  }
  // The same without the bias, whose gradient the caller has.
  void backward_without_bias(const Tensor& dx, const Tensor& dy, const Tensor& x,
                             const MatrixPlace& at, const UnitTensors& t) {
    MatrixPlace matrix = at;
    matrix.bias = -1;
    backward(dx, dy, x, matrix, t);
  }

  // dx = dy W^T alone, and the gradient of W alone, in this order.
  void input_backward(const Tensor& dx, const Tensor& dy, const MatrixPlace& at,
                      const UnitTensors& t) {
    ops_.matmul(dx, dy, weight(at, t),
                {.transpose_b = !outputs_first_,
                 .float8 = operands_of_backward(float8_),
                 .b_codes = codes(at, t)});
    adapter_input_backward(dx, dy, at, t);
  }
  void weight_backward(const Tensor& dy, const Tensor& x, const MatrixPlace& at,
                       const UnitTensors& t) {
    adapter_weight_backward(dy, x, at, t);
    const Tensor dweight = gradient(at, t);
    if (!is_trained(dweight)) return;
    const Float8Operands float8 = operands_of_backward(float8_);
    if (outputs_first_)
      ops_.matmul(dweight, dy, x,
                  {.transpose_a = true, .accumulate = t.accumulate, .float8 = float8});
    else
      ops_.matmul(
          dweight, x, dy,
          {.transpose_a = true, .accumulate = t.accumulate, .float8 = {float8.b, float8.a}});
  }

  [[nodiscard]] Tensor weight(const MatrixPlace& at, const UnitTensors& t) const {
    return part_of(t.parameters[size_t(at.tensor)], at);
  }
  [[nodiscard]] KeptCodes codes(const MatrixPlace& at, const UnitTensors& t) const {
    if (t.codes.memory.data == nullptr) return {};
    return {t.codes.rows(at.codes, kept_code_bytes(weight(at, t).count())), t.makes_codes};
  }
  // Empty if there is none.
  static Tensor vector_of(int index, const std::vector<Tensor>& tensors) {
    return index < 0 ? Tensor{} : tensors[size_t(index)];
  }

 private:
  static Tensor part_of(const Tensor& tensor, const MatrixPlace& at) {
    return at.rows == tensor.shape[0] ? tensor : tensor.rows(at.first, at.rows);
  }
  [[nodiscard]] static Tensor gradient(const MatrixPlace& at, const UnitTensors& t) {
    const Tensor& whole = t.gradients[size_t(at.tensor)];
    return is_trained(whole) ? part_of(whole, at) : whole;
  }

  [[nodiscard]] const Tensor& first_of(const MatrixPlace& at,
                                       const std::vector<Tensor>& tensors) const {
    return tensors[size_t(adapters_[size_t(at.adapter)].a)];
  }
  // B's rows for the outputs of this part of the adapted matrix.
  [[nodiscard]] Tensor second_of(const MatrixPlace& at, const std::vector<Tensor>& tensors) const {
    const Tensor& whole = tensors[size_t(adapters_[size_t(at.adapter)].b)];
    const bool is_whole = (at.is_first && at.is_last) || !is_trained(whole);
    return is_whole ? whole : whole.rows(at.first, at.rows);
  }
  // (N, rank) of the scratch.
  static Tensor narrow(size_t scratch, size_t rows, const UnitTensors& t) {
    const Tensor& flat = t.scratch[scratch];
    return flat.reshape({rows, flat.count() / rows});
  }

  [[nodiscard]] bool drops(const UnitTensors& t) const {
    return dropout_ > 0 && t.dropout.first_token != nullptr;
  }
  // x with elements of zero, in the scratch, as the adapter of training reads it; or x itself.
  Tensor dropped(const Tensor& x, const MatrixPlace& at, const UnitTensors& t) {
    if (!drops(t)) return x;
    const Tensor out = room_for_dropped(x.shape.rows(), x.shape.columns(), t);
    drop_out(out, x, at, t);
    return out;
  }
  static Tensor room_for_dropped(size_t rows, size_t columns, const UnitTensors& t) {
    const Tensor& flat = t.scratch[1];  // BlockScratch::kDropped
    return flat.rows(0, rows * columns).reshape({rows, columns});
  }
  // The same elements of each tensor as large as the adapter's input.
  void drop_out(const Tensor& out, const Tensor& x, const MatrixPlace& at, const UnitTensors& t) {
    ops_.drop_out(out, x,
                  {dropout_,
                   {mix64(t.dropout.key + uint64_t(at.adapter)),
                    size_t(*t.dropout.first_token) * x.shape.columns()}});
  }

  // factor * x A^T, of what dropped() leaves of x. The parts of a matrix, one after the other, share
  // it: the first one's call makes it.
  Tensor adapt(const Tensor& x, const MatrixPlace& at, const UnitTensors& t) {
    const Tensor h = narrow(0, x.shape.rows(), t);  // BlockScratch::kAdapted
    if (!at.is_first) return h;
    ops_.matmul(h, x, first_of(at, t.parameters), {.transpose_b = true});
    ops_.scale(h, h, factor_);
    return h;
  }

  // The gradient of factor * x A^T, which the parts of a matrix add up; and dx += that times A.
  void adapter_input_backward(const Tensor& dx, const Tensor& dy, const MatrixPlace& at,
                              const UnitTensors& t) {
    if (at.adapter < 0) return;
    const Tensor dh = narrow(gradient_, dy.shape.rows(), t);
    ops_.matmul(dh, dy, second_of(at, t.parameters), {.accumulate = !at.is_first});
    if (!at.is_last) return;
    ops_.scale(dh, dh, factor_);
    const Tensor& first = first_of(at, t.parameters);
    if (!drops(t)) return ops_.matmul(dx, dh, first, {.accumulate = true});
    const Tensor own = room_for_dropped(dx.shape.rows(), dx.shape.columns(), t);
    ops_.matmul(own, dh, first, {});
    drop_out(own, own, at, t);
    ops_.add(dx, dx, own);
  }
  void adapter_weight_backward(const Tensor& dy, const Tensor& x, const MatrixPlace& at,
                               const UnitTensors& t) {
    if (at.adapter < 0) return;
    const MatmulOptions options{.transpose_a = true, .accumulate = t.accumulate};
    const Tensor dsecond = second_of(at, t.gradients);
    const Tensor in = at.is_first || at.is_last ? dropped(x, at, t) : x;
    const Tensor h = adapt(in, at, t);
    if (is_trained(dsecond)) ops_.matmul(dsecond, dy, h, options);
    const Tensor dfirst = first_of(at, t.gradients);
    if (at.is_last && is_trained(dfirst))
      ops_.matmul(dfirst, narrow(gradient_, x.shape.rows(), t), in, options);
  }

  Ops& ops_;
  const bool outputs_first_;
  const bool float8_;
  const std::vector<Adapter> adapters_;
  const float factor_, dropout_;
  const size_t gradient_;  // of an adapter's first product, in scratch
};

}  // namespace gxp
