// The tensors of an operation's arguments.
#pragma once

#include "kernels/elementwise.h"
#include "kernels/ops.h"

namespace gxp {

// Calls visit(tensor) for each tensor of an operation's argument.
template <class Plain, class Visit>
void for_tensors(Plain&, const Visit&) {}
template <class Bytes, class Visit>
void for_tensors(BasicTensor<Bytes>& tensor, const Visit& visit) {
  visit(tensor);
}
template <class AnyTensor, class Visit>
void for_tensors(GroupedHeads<AnyTensor>& in, const Visit& visit) {
  for (AnyTensor* tensor : {&in.queries, &in.keys, &in.values}) visit(*tensor);
}
template <class Visit>
void for_tensors(RotatedPositions& positions, const Visit& visit) {
  visit(positions.document_begin);
}
template <class Visit>
void for_tensors(LinearGelu& layer, const Visit& visit) {
  for (Tensor* tensor : {&layer.activated, &layer.x, &layer.codes.memory}) visit(*tensor);
  for (ConstTensor* tensor : {&layer.in, &layer.weight, &layer.bias}) visit(*tensor);
}
template <class Visit>
void for_tensors(LinearBackward& layer, const Visit& visit) {
  for (Tensor* tensor :
       {&layer.dx, &layer.dweight, &layer.dbias, &layer.in, &layer.activated, &layer.codes.memory})
    visit(*tensor);
  for (ConstTensor* tensor : {&layer.dout, &layer.weight}) visit(*tensor);
}
template <class Visit>
void for_tensors(StreamOutputs& outputs, const Visit& visit) {
  for (Tensor* tensor : {&outputs.rounded, &outputs.column_sums}) visit(*tensor);
}
template <class Visit>
void for_tensors(NormBackward& norm, const Visit& visit) {
  for (Tensor* tensor : {&norm.dx, &norm.dweight, &norm.dbias}) visit(*tensor);
  for (ConstTensor* tensor : {&norm.dout, &norm.x, &norm.mean, &norm.rstd, &norm.weight})
    visit(*tensor);
  for_tensors(norm.also, visit);
}
template <class Visit>
void for_tensors(MatmulOptions& options, const Visit& visit) {
  for (ConstTensor* tensor : {&options.bias, &options.residual}) visit(*tensor);
  visit(options.b_codes.memory);
}
template <class Visit>
void for_tensors(ElementwiseCall& call, const Visit& visit) {
  for (Tensor& tensor : call.written) visit(tensor);
  for (ConstTensor& tensor : call.read) visit(tensor);
}
template <class Visit>
void for_tensors(PackedAdamW& call, const Visit& visit) {
  for (Tensor* tensor :
       {&call.weights, &call.first, &call.second, &call.first_scales, &call.second_scales})
    visit(*tensor);
  visit(call.gradients);
}

}  // namespace gxp
