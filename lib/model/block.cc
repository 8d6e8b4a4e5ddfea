#include "lib/model/block.h"

namespace gxp {
namespace {

// (N, columns) of a flat tensor.
Tensor rows_of(const Tensor& tensor, const UnitTensors& t) {
  const size_t rows = t.input.shape.rows();
  return tensor.reshape({rows, tensor.count() / rows});
}

// (B, T, columns) of (N, columns).
Tensor batch_of(const Tensor& rows, const UnitTensors& t) {
  return rows.reshape({t.input.shape[0], t.input.shape[1], rows.shape.columns()});
}

GroupedHeads<ConstTensor> as_const(const GroupedHeads<Tensor>& heads) {
  return {heads.queries, heads.keys, heads.values, heads.heads, heads.kv_heads, heads.layout};
}

HeadLayout layout_of(QkvTensors tensors) {
  if (tensors == QkvTensors::kBlocks) return HeadLayout::kBlocks;
  return tensors == QkvTensors::kPerHead ? HeadLayout::kPerHead : HeadLayout::kSeparate;
}

}  // namespace

DecoderBlock::DecoderBlock(const Architecture& architecture, Ops& ops)
    : ops_(ops),
      d_(architecture.decoder),
      norms_(d_, ops),
      products_(d_, architecture.float8, ops),
      float8_(architecture.float8),
      rounds_(architecture.compute != DType::kF32) {}

Tensor DecoderBlock::saved(BlockSaved what, const UnitTensors& t) const {
  return rows_of(t.saved[d_.saved[what]], t);
}

Tensor DecoderBlock::scratch(const Places<BlockScratch>& list, BlockScratch what,
                             const UnitTensors& t) const {
  return rows_of(t.scratch[list[what]], t);
}

// The activation function's output: kept, or in the operation's scratch; else empty.
Tensor DecoderBlock::activated(const Places<BlockScratch>& list, const UnitTensors& t) const {
  if (d_.saved.has(BlockSaved::kActivated))
    return operand(saved(BlockSaved::kActivated, t), BlockOperand::kActivated, t);
  if (!list.has(BlockScratch::kActivated)) return {};
  return operand(scratch(list, BlockScratch::kActivated, t), BlockOperand::kActivated, t);
}

// What the branch's first products read: kept, or the last of the scratch.
Tensor DecoderBlock::branch_input(Branch branch, const UnitTensors& t) const {
  const bool is_first = branch == Branch::kAttention || d_.kind.one_norm;
  const BlockSaved output = is_first ? BlockSaved::kNormed1 : BlockSaved::kNormed2;
  const Tensor normed = d_.saved.has(output) ? saved(output, t) : rows_of(t.scratch.back(), t);
  return operand(normed, is_first ? BlockOperand::kNormed1 : BlockOperand::kNormed2, t);
}

// The branch's output before the norm after it.
Tensor DecoderBlock::branch_output(Branch branch, const UnitTensors& t) const {
  return saved(branch == Branch::kMlp ? BlockSaved::kMlpOut : BlockSaved::kAttentionOut, t);
}

// The gradient of the branch's last product, as products take it.
Tensor DecoderBlock::output_gradient(Branch branch, const UnitTensors& t) const {
  if (!d_.backward_scratch.has(BlockScratch::kRoundedGradient)) return matrix(t.stream_gradient);
  return operand(
      gradient(BlockScratch::kRoundedGradient, t),
      branch == Branch::kMlp ? BlockOperand::kMlpGradient : BlockOperand::kAttentionGradient, t);
}

// (B, H, T) of a flat tensor.
Tensor DecoderBlock::per_head(const Tensor& sums, const UnitTensors& t) const {
  return sums.reshape({t.input.shape[0], d_.heads, t.input.shape[1]});
}

GroupedHeads<Tensor> DecoderBlock::heads_of(const Tensor& queries, const Tensor& keys,
                                            const Tensor& values, const UnitTensors& t) const {
  return {batch_of(queries, t), batch_of(keys, t), batch_of(values, t),
          int(d_.heads),        int(d_.kv_heads),  layout_of(d_.kind.qkv)};
}

GroupedHeads<Tensor> DecoderBlock::saved_heads(const UnitTensors& t) const {
  if (d_.has_one_qkv()) {
    const Tensor qkv = saved(BlockSaved::kQkv, t);
    return heads_of(qkv, qkv, qkv, t);
  }
  return heads_of(saved(BlockSaved::kQuery, t), saved(BlockSaved::kKey, t),
                  saved(BlockSaved::kValue, t), t);
}

AttentionScores DecoderBlock::scores(size_t layer) const {
  return {.scale = d_.layers[layer].scale, .cap = d_.score_cap, .window = d_.layers[layer].window};
}

Norm DecoderBlock::norm_before(Branch branch, const UnitTensors& t) const {
  using enum BlockSaved;
  const bool is_first = branch == Branch::kAttention || d_.kind.one_norm;
  const BlockSaved mean = is_first ? kMean1 : kMean2;
  return {is_first || d_.kind.parallel ? matrix(t.input) : saved(kResidual, t),
          d_.saved.has(mean) ? t.saved[d_.saved[mean]] : Tensor{},
          t.saved[d_.saved[is_first ? kRstd1 : kRstd2]],
          d_.norms[is_first ? BlockNorm::kBefore1 : BlockNorm::kBefore2]};
}

Norm DecoderBlock::norm_after(Branch branch, const UnitTensors& t) const {
  const bool is_mlp = branch == Branch::kMlp;
  const BlockSaved rstd = is_mlp ? BlockSaved::kMlpOutRstd : BlockSaved::kAttentionOutRstd;
  return {branch_output(branch, t),
          {},
          t.saved[d_.saved[rstd]],
          d_.norms[is_mlp ? BlockNorm::kAfter2 : BlockNorm::kAfter1]};
}

DecoderBlock::HeadNorm DecoderBlock::query_norm() const {
  return {BlockNorm::kQuery,
          BlockSaved::kRawQuery,
          BlockSaved::kQueryMean,
          BlockSaved::kQueryRstd,
          BlockSaved::kQuery,
          BlockScratch::kRawQueryGradient,
          BlockOperand::kQueryGradient,
          d_.heads};
}

DecoderBlock::HeadNorm DecoderBlock::key_norm() const {
  return {BlockNorm::kKey,
          BlockSaved::kRawKey,
          BlockSaved::kKeyMean,
          BlockSaved::kKeyRstd,
          BlockSaved::kKey,
          BlockScratch::kRawKeyGradient,
          BlockOperand::kKeyGradient,
          d_.kv_heads};
}

Norm DecoderBlock::norm_of(const HeadNorm& which, const UnitTensors& t) const {
  const Tensor& raw = t.saved[d_.saved[which.raw]];
  const Tensor& rstd = t.saved[d_.saved[which.rstd]];
  return {raw.reshape({rstd.count(), raw.count() / rstd.count()}),
          d_.saved.has(which.mean) ? t.saved[d_.saved[which.mean]] : Tensor{}, rstd,
          d_.norms[which.weight]};
}

void DecoderBlock::forward(const UnitTensors& t, size_t layer) {
  const Tensor hidden = begin_forward(t);
  make_heads(t, layer);
  attend(t, layer);
  make_rest(t, hidden);
  add_outputs(t, hidden);
}

// Computes the saved activations that `what` does not keep; and the activation function's output,
// unless that is left out.
void DecoderBlock::recompute(const UnitTensors& t, size_t layer, Recompute what) {
  make_heads(t, layer);
  if (what == Recompute::kFull) attend(t, layer);
  make_rest(t, activated(d_.recompute_scratch, t));
}

// Returns the place of the activation function's output.
Tensor DecoderBlock::begin_forward(const UnitTensors& t) {
  if (t.largest.memory.data != nullptr) ops_.fill(t.largest, 0.0f);
  return activated(d_.forward_scratch, t);
}

// Of the positions from `first` on.
GroupedHeads<Tensor> DecoderBlock::make_heads(const UnitTensors& t, size_t layer, size_t first) {
  make_input(Branch::kAttention, t);
  make_projections(t);
  GroupedHeads<Tensor> heads = saved_heads(t);
  turn(heads, layer, 1.0f, {first, t.document_begin});
  return heads;
}

void DecoderBlock::attend(const UnitTensors& t, size_t layer) {
  ops_.attention_forward(batch_of(attention(t), t),
                         per_head(t.saved[d_.saved[BlockSaved::kLse]], t), as_const(saved_heads(t)),
                         scores(layer), t.document_begin);
}

// What follows attention, up to the last products.
void DecoderBlock::make_rest(const UnitTensors& t, const Tensor& activated) {
  make_output(Branch::kAttention, attention(t), t);
  if (!d_.kind.parallel)
    add_output(Branch::kAttention, saved(BlockSaved::kResidual, t), attention(t), matrix(t.input),
               t);
  if (!d_.kind.one_norm) make_input(Branch::kMlp, t);
  make_hidden(t, activated);
  make_output(Branch::kMlp, activated, t);
}

void DecoderBlock::add_outputs(const UnitTensors& t, const Tensor& activated) {
  const Tensor out = matrix(t.output);
  if (d_.kind.parallel) {
    add_output(Branch::kAttention, out, attention(t), matrix(t.input), t);
    add_output(Branch::kMlp, out, activated, out, t);
  } else {
    add_output(Branch::kMlp, out, activated, saved(BlockSaved::kResidual, t), t);
  }
}

void DecoderBlock::make_input(Branch branch, const UnitTensors& t) {
  const Tensor out = branch_input(branch, t);
  if (d_.kind.norm_before)
    norms_.forward(out, norm_before(branch, t), t);
  else
    ops_.convert(out, branch == Branch::kMlp ? saved(BlockSaved::kResidual, t) : matrix(t.input));
}

void DecoderBlock::make_projections(const UnitTensors& t) {
  using enum BlockSaved;
  const Tensor in = branch_input(Branch::kAttention, t);
  if (d_.has_one_qkv()) return products_.apply(saved(kQkv, t), in, d_.matrix(Matrix::kQkv), t);
  const bool has_norms = d_.kind.query_key_norm != QueryKeyNorm::kNone;
  products_.apply(saved(has_norms ? kRawQuery : kQuery, t), in, d_.matrix(Matrix::kQuery), t);
  products_.apply(saved(has_norms ? kRawKey : kKey, t), in, d_.matrix(Matrix::kKey), t);
  products_.apply(saved(kValue, t), in, d_.matrix(Matrix::kValue), t);
  if (!has_norms) return;
  for (const HeadNorm& which : {query_norm(), key_norm()}) {
    const Norm norm = norm_of(which, t);
    norms_.forward(t.saved[d_.saved[which.normed]].reshape(norm.x.shape), norm, t);
  }
}

// Queries and keys by their positions.
void DecoderBlock::turn(const GroupedHeads<Tensor>& heads, size_t layer, float direction,
                        const RotatedPositions& positions) {
  if (!d_.layers[layer].rotates) return;
  const Rotary& rotary = d_.layers[layer].is_local ? d_.local_rotary : d_.rotary;
  const size_t size = d_.head_size;
  const bool per_head = heads.layout == HeadLayout::kPerHead;
  const size_t stride = per_head ? 3 * size : size;
  const size_t first_key = per_head                              ? size
                           : heads.layout == HeadLayout::kBlocks ? d_.query_channels()
                                                                 : 0;
  ops_.rotate(heads.queries, {0, d_.heads, size, stride}, rotary, direction, positions);
  ops_.rotate(heads.keys, {first_key, d_.kv_heads, size, stride}, rotary, direction, positions);
}

void DecoderBlock::make_hidden(const UnitTensors& t, const Tensor& activated) {
  const Tensor in = branch_input(Branch::kMlp, t);
  const Tensor up = saved(BlockSaved::kUp, t);
  const MatrixPlace& first = d_.matrix(Matrix::kUp);
  if (d_.is_fused_gelu())
    return ops_.linear_gelu({.activated = activated,
                             .x = up,
                             .in = in,
                             .weight = products_.weight(first, t),
                             .bias = Products::vector_of(first.bias, t.parameters),
                             .float8 = float8_,
                             .codes = products_.codes(first, t)});
  if (d_.kind.gated) products_.apply(saved(BlockSaved::kGate, t), in, d_.matrix(Matrix::kGate), t);
  products_.apply(up, in, first, t);
  if (activated.memory.data == nullptr) return;
  if (d_.kind.gated)
    ops_.gated_forward(d_.activation, activated, saved(BlockSaved::kGate, t), up);
  else
    ops_.activation_forward(d_.activation, activated, up);
}

// The branch's output, where a norm follows it, and that norm's, in the scratch.
void DecoderBlock::make_output(Branch branch, const Tensor& in, const UnitTensors& t) {
  if (!d_.kind.norm_after) return;
  products_.apply(branch_output(branch, t), in, last_matrix(branch), t);
  norms_.forward(branch_scratch(t), norm_after(branch, t), t);
}

// out = residual + the branch's output, by its last product if nothing else is done to that.
void DecoderBlock::add_output(Branch branch, const Tensor& out, const Tensor& in,
                              const Tensor& residual, const UnitTensors& t) {
  if (d_.adds_directly()) return products_.apply(out, in, last_matrix(branch), t, residual);
  if (!d_.kind.norm_after) products_.apply(branch_scratch(t), in, last_matrix(branch), t);
  ops_.add_scaled(out, residual, branch_scratch(t), float(d_.residual_scale));
}

}  // namespace gxp
