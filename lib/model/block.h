// A block of a decoder: forward, recomputation and backward. What is computed: lib/arch/decoder.h.
#pragma once

#include "lib/model/norms.h"
#include "lib/model/products.h"

namespace gxp {

// The two ways from the stream back to it.
enum class Branch { kAttention, kMlp };

// Holds no tensor: `t` is the memory of one operation on the block of layer `layer`.
class DecoderBlock {
 public:
  DecoderBlock(const Architecture& architecture, Ops& ops);

  void forward(const UnitTensors& t, size_t layer);
  // As Model's.
  void extend(const UnitTensors& t, size_t layer, const KeyValueCache& past, size_t first);
  // The tensors of `saved` that `what` does not keep, to forward's bits.
  void recompute(const UnitTensors& t, size_t layer, Recompute what);
  void backward(const UnitTensors& t, size_t layer);

 private:
  // A norm of queries or keys, of each head or of all.
  struct HeadNorm {
    BlockNorm weight;
    BlockSaved raw, mean, rstd, normed;
    BlockScratch gradient;
    BlockOperand operand;
    size_t heads;
  };

  // Views of the operation's memory: (N, columns).
  [[nodiscard]] Tensor saved(BlockSaved what, const UnitTensors& t) const;
  [[nodiscard]] Tensor scratch(const Places<BlockScratch>& list, BlockScratch what,
                               const UnitTensors& t) const;
  [[nodiscard]] Tensor gradient(BlockScratch what, const UnitTensors& t) const {
    return scratch(d_.backward_scratch, what, t);
  }
  [[nodiscard]] Tensor operand(const Tensor& x, BlockOperand which, const UnitTensors& t) const {
    return t.operand(x, d_.operands[which]);
  }
  [[nodiscard]] Tensor attention(const UnitTensors& t) const {
    return operand(saved(BlockSaved::kAttention, t), BlockOperand::kAttention, t);
  }
  [[nodiscard]] Tensor activated(const Places<BlockScratch>& list, const UnitTensors& t) const;
  [[nodiscard]] Tensor branch_input(Branch branch, const UnitTensors& t) const;
  [[nodiscard]] Tensor branch_output(Branch branch, const UnitTensors& t) const;
  [[nodiscard]] Tensor branch_scratch(const UnitTensors& t) const {  // of forward and recompute
    return scratch(d_.forward_scratch, BlockScratch::kBranch, t);
  }
  [[nodiscard]] Tensor output_gradient(Branch branch, const UnitTensors& t) const;
  [[nodiscard]] const MatrixPlace& last_matrix(Branch branch) const {
    return d_.matrix(branch == Branch::kMlp ? Matrix::kDown : Matrix::kOutput);
  }
  [[nodiscard]] Tensor per_head(const Tensor& sums, const UnitTensors& t) const;
  [[nodiscard]] GroupedHeads<Tensor> heads_of(const Tensor& queries, const Tensor& keys,
                                              const Tensor& values, const UnitTensors& t) const;
  [[nodiscard]] GroupedHeads<Tensor> saved_heads(const UnitTensors& t) const;
  [[nodiscard]] AttentionScores scores(size_t layer) const;
  [[nodiscard]] Norm norm_before(Branch branch, const UnitTensors& t) const;
  [[nodiscard]] Norm norm_after(Branch branch, const UnitTensors& t) const;
  [[nodiscard]] HeadNorm query_norm() const;
  [[nodiscard]] HeadNorm key_norm() const;
  [[nodiscard]] Norm norm_of(const HeadNorm& which, const UnitTensors& t) const;

  Tensor begin_forward(const UnitTensors& t);
  void attend(const UnitTensors& t, size_t layer);
  void add_outputs(const UnitTensors& t, const Tensor& activated);
  GroupedHeads<Tensor> make_heads(const UnitTensors& t, size_t layer, size_t first = 0);
  void make_rest(const UnitTensors& t, const Tensor& activated);
  void make_input(Branch branch, const UnitTensors& t);
  void make_projections(const UnitTensors& t);
  void turn(const GroupedHeads<Tensor>& heads, size_t layer, float direction,
            const RotatedPositions& positions);
  void make_hidden(const UnitTensors& t, const Tensor& activated);
  void make_output(Branch branch, const Tensor& in, const UnitTensors& t);
  void add_output(Branch branch, const Tensor& out, const Tensor& in, const Tensor& residual,
                  const UnitTensors& t);

  Tensor begin_backward(Branch branch, const UnitTensors& t);
  void copy_gradient(const UnitTensors& t);
  StreamOutputs outputs_for(Branch branch, const UnitTensors& t);
  Tensor cleared_bias(Branch branch, const UnitTensors& t);
  void mlp_backward(const UnitTensors& t);
  Tensor plain_mlp_backward(const Tensor& dout, const UnitTensors& t);
  void down_backward(const Tensor& dout, const UnitTensors& t);
  void attention_backward(const UnitTensors& t, size_t layer);
  void heads_backward(const GroupedHeads<Tensor>& gradients, const UnitTensors& t);
  Tensor head_norm_backward(const HeadNorm& which, const Tensor& dout, const UnitTensors& t);
  void input_backward(Branch branch, const UnitTensors& t, const StreamOutputs& also = {});
  Tensor input_again(Branch branch, const UnitTensors& t);

  Ops& ops_;
  const Decoder d_;
  Norms norms_;
  Products products_;
  const bool float8_;
  const bool rounds_;  // the stream's gradient, for products
};

}  // namespace gxp
