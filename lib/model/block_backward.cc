#include "lib/model/block.h"

namespace gxp {

void DecoderBlock::backward(const UnitTensors& t, size_t layer) {
  mlp_backward(t);
  attention_backward(t, layer);
}

// The gradient of the branch's last product, and that product's bias's.
Tensor DecoderBlock::begin_backward(Branch branch, const UnitTensors& t) {
  const Tensor stream = matrix(t.stream_gradient);
  const Tensor dout = output_gradient(branch, t);
  if (d_.kind.norm_after) {
    const Tensor exact = gradient(BlockScratch::kOutputGradient, t);
    ops_.fill(exact, 0.0f);
    norms_.backward(exact, stream, norm_after(branch, t), t);
    ops_.round_and_sum(outputs_for(branch, t), exact);
    return rounds_ ? dout : exact;
  }
  if (d_.residual_scale != 1) {
    ops_.scale(dout, stream, float(d_.residual_scale));
    const Tensor dbias = cleared_bias(branch, t);
    if (is_trained(dbias)) ops_.bias_backward(dbias, dout);
  } else if (branch == Branch::kMlp) {
    d_.kind.parallel ? copy_gradient(t) : ops_.round_and_sum(outputs_for(branch, t), stream);
  }
  return dout;  // of attention: as the MLP's norm, or copy_gradient(), has left it
}

// Both branches have the same gradient, of which each norm's backward changes the original.
void DecoderBlock::copy_gradient(const UnitTensors& t) {
  const Tensor stream = matrix(t.stream_gradient);
  ops_.round_and_sum(outputs_for(Branch::kMlp, t), stream);
  if (!rounds_) ops_.convert(output_gradient(Branch::kMlp, t), stream);
  const Tensor dbias = cleared_bias(Branch::kAttention, t);
  if (is_trained(dbias)) ops_.bias_backward(dbias, stream);
}

// What the branch's last product takes of the complete gradient of its output.
StreamOutputs DecoderBlock::outputs_for(Branch branch, const UnitTensors& t) {
  return {.rounded = rounds_ ? output_gradient(branch, t) : Tensor{},
          .column_sums = cleared_bias(branch, t)};
}

// The gradient of the bias of the branch's last product, ready to be added to; empty: none.
Tensor DecoderBlock::cleared_bias(Branch branch, const UnitTensors& t) {
  const Tensor dbias = Products::vector_of(last_matrix(branch).bias, t.gradients);
  if (!t.accumulate && is_trained(dbias)) ops_.fill(dbias, 0.0f);
  return dbias;
}

void DecoderBlock::mlp_backward(const UnitTensors& t) {
  const Tensor dout = begin_backward(Branch::kMlp, t);
  const Tensor dnormed = gradient(BlockScratch::kBranchGradient, t);
  if (d_.kind.gated) {
    down_backward(dout, t);
    const Tensor again = input_again(Branch::kMlp, t);
    const Tensor gate = operand(saved(BlockSaved::kGate, t), BlockOperand::kGateGradient, t);
    const Tensor up = operand(saved(BlockSaved::kUp, t), BlockOperand::kUpGradient, t);
    products_.backward(dnormed, gate, again, d_.matrix(Matrix::kGate), t);
    products_.backward(dnormed, up, again, d_.matrix(Matrix::kUp), t, true);
  } else {
    const Tensor dhidden = plain_mlp_backward(dout, t);
    products_.backward(dnormed, dhidden, input_again(Branch::kMlp, t), d_.matrix(Matrix::kUp), t);
  }
  if (d_.kind.one_norm) return;  // attention's gradient is added first
  input_backward(
      Branch::kMlp, t,
      d_.differentiates_directly() ? outputs_for(Branch::kAttention, t) : StreamOutputs{});
}

// The gradient of the activation function's argument.
Tensor DecoderBlock::plain_mlp_backward(const Tensor& dout, const UnitTensors& t) {
  const Tensor dhidden =
      operand(gradient(BlockScratch::kHiddenGradient, t), BlockOperand::kHiddenGradient, t);
  if (!d_.is_fused_gelu()) {
    down_backward(dout, t);
    return dhidden;
  }
  // GELU's output, unless it is kept, is made again in place of its input, which nothing needs
  // afterwards.
  LinearBackward pass = products_.layer(d_.matrix(Matrix::kDown), t);
  pass.dx = dhidden;
  pass.dout = dout;
  pass.in = operand(saved(BlockSaved::kUp, t), BlockOperand::kActivatedAgain, t);
  pass.of_gelu = true;
  if (d_.saved.has(BlockSaved::kActivated)) pass.activated = activated(d_.backward_scratch, t);
  ops_.linear_backward(pass);
  return dhidden;
}

// Through the MLP's last product and the activation function: gate and up become their gradients,
// or, of plain MLPs, the scratch that of the function's argument.
void DecoderBlock::down_backward(const Tensor& dout, const UnitTensors& t) {
  const MatrixPlace& down = d_.matrix(Matrix::kDown);
  const Tensor hidden = gradient(BlockScratch::kHiddenGradient, t);
  const Tensor up = saved(BlockSaved::kUp, t);
  const bool is_kept = d_.saved.has(BlockSaved::kActivated);
  products_.input_backward(hidden, dout, down, t);
  Tensor active = activated(d_.backward_scratch, t);  // if it is kept
  if (d_.kind.gated) {
    const Tensor gate = operand(saved(BlockSaved::kGate, t), BlockOperand::kGateGradient, t);
    const Tensor factor = operand(up, BlockOperand::kUpGradient, t);
    if (!is_kept) active = operand(hidden, BlockOperand::kActivatedAgain, t);
    if (is_kept)
      ops_.gated_gradients(d_.activation, gate, factor, hidden);
    else
      ops_.gated_backward(d_.activation, active, gate, factor);
  } else {
    const Tensor dhidden = operand(hidden, BlockOperand::kHiddenGradient, t);
    if (!is_kept) active = operand(up, BlockOperand::kActivatedAgain, t);
    ops_.activation_backward(d_.activation, dhidden, is_kept ? Tensor{} : active, hidden, up);
  }
  products_.weight_backward(dout, active, down, t);
}

void DecoderBlock::attention_backward(const UnitTensors& t, size_t layer) {
  using enum BlockScratch;
  const Tensor dout = begin_backward(Branch::kAttention, t);
  const Tensor dattention = gradient(d_.has_one_qkv() ? kBranchGradient : kAttentionGradient, t);
  products_.backward_without_bias(dattention, dout, attention(t), d_.matrix(Matrix::kOutput), t);

  const GroupedHeads<Tensor> heads = saved_heads(t);
  GroupedHeads<Tensor> gradients;
  if (d_.has_one_qkv()) {
    const Tensor dqkv = operand(gradient(kQkvGradient, t), BlockOperand::kQkvGradient, t);
    gradients = heads_of(dqkv, dqkv, dqkv, t);
  } else {
    gradients = heads_of(gradient(kQueryGradient, t), gradient(kKeyGradient, t),
                         operand(gradient(kValueGradient, t), BlockOperand::kValueGradient, t), t);
  }
  // Queries' and keys' largest values are those of the last pass over them.
  const auto with_places = [&] {
    if (d_.has_one_qkv()) return;
    gradients.queries = operand(gradients.queries, BlockOperand::kQueryGradient, t);
    gradients.keys = operand(gradients.keys, BlockOperand::kKeyGradient, t);
  };
  const bool all_turn =
      d_.layers[layer].rotates && 2 * d_.rotary.frequencies.size() == d_.head_size;
  if (!all_turn) with_places();
  const auto batch = [&](const Tensor& rows) {
    return rows.reshape({t.input.shape[0], t.input.shape[1], d_.query_channels()});
  };
  ops_.attention_backward(
      gradients, per_head(t.scratch[d_.backward_scratch[kRowSums]], t), batch(dattention),
      {heads.queries, heads.keys, heads.values, heads.heads, heads.kv_heads, heads.layout},
      batch(attention(t)), per_head(t.saved[d_.saved[BlockSaved::kLse]], t), scores(layer),
      t.document_begin);
  if (all_turn) with_places();
  turn(gradients, layer, -1.0f, {.document_begin = t.document_begin});
  heads_backward(gradients, t);
  input_backward(Branch::kAttention, t);
}

// Through the projections to queries, keys and values.
void DecoderBlock::heads_backward(const GroupedHeads<Tensor>& gradients, const UnitTensors& t) {
  const Tensor again = input_again(Branch::kAttention, t);
  const Tensor dnormed = gradient(BlockScratch::kBranchGradient, t);
  if (d_.has_one_qkv())
    return products_.backward(dnormed, matrix(gradients.queries), again, d_.matrix(Matrix::kQkv),
                              t);
  Tensor dqueries = matrix(gradients.queries);
  Tensor dkeys = matrix(gradients.keys);
  if (d_.kind.query_key_norm != QueryKeyNorm::kNone) {
    dqueries = head_norm_backward(query_norm(), dqueries, t);
    dkeys = head_norm_backward(key_norm(), dkeys, t);
  }
  products_.backward(dnormed, dqueries, again, d_.matrix(Matrix::kQuery), t, d_.kind.one_norm);
  products_.backward(dnormed, dkeys, again, d_.matrix(Matrix::kKey), t, true);
  products_.backward(dnormed, matrix(gradients.values), again, d_.matrix(Matrix::kValue), t, true);
}

// The gradient of queries or keys before their norm; rounded in place of what forward has saved of
// them, which nothing needs afterwards.
Tensor DecoderBlock::head_norm_backward(const HeadNorm& which, const Tensor& dout,
                                        const UnitTensors& t) {
  const Norm norm = norm_of(which, t);
  const Tensor exact = gradient(which.gradient, t);
  const Tensor rounded = operand(saved(which.normed, t), which.operand, t);
  ops_.fill(exact, 0.0f);
  norms_.backward(exact.reshape(norm.x.shape), dout.reshape(norm.x.shape), norm, t,
                  {.rounded = rounds_ ? rounded.reshape(norm.x.shape) : Tensor{}});
  return rounds_ ? rounded : exact;
}

// The stream's gradient += that through what the branch reads.
void DecoderBlock::input_backward(Branch branch, const UnitTensors& t, const StreamOutputs& also) {
  const Tensor stream = matrix(t.stream_gradient);
  const Tensor dnormed = gradient(BlockScratch::kBranchGradient, t);
  if (d_.kind.norm_before)
    norms_.backward(stream, dnormed, norm_before(branch, t), t, also);
  else
    ops_.add(stream, stream, dnormed);
}

// What the branch's first products have read, which is made again unless forward has kept it.
Tensor DecoderBlock::input_again(Branch branch, const UnitTensors& t) {
  const Tensor out = branch_input(branch, t);
  const bool is_first = branch == Branch::kAttention || d_.kind.one_norm;
  if (d_.saved.has(is_first ? BlockSaved::kNormed1 : BlockSaved::kNormed2)) return out;
  if (d_.kind.norm_before)
    norms_.apply(out, norm_before(branch, t), t);
  else
    make_input(branch, t);
  return out;
}

}  // namespace gxp
