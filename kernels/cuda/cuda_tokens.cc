#include "kernels/cuda/cuda_tokens.h"

#include <cmath>
#include <vector>

#include "kernels/cuda/classifier_launch.h"
#include "kernels/cuda/embedding_launch.h"
#include "kernels/cuda/rope_launch.h"
#include "kernels/math/rope.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

const int32_t* cuda_indices(const ConstTensor& tensor, size_t count) {
  GXP_ASSERT(tensor.dtype == DType::kI32);
  return cuda_vector<int32_t>(tensor, count);
}

}  // namespace

void CudaTokens::embedding_forward(const Tensor& out, const ConstTensor& tokens,
                                   const ConstTensor& token_table,
                                   const ConstTensor& position_table) {
  const size_t rows = out.shape.rows();
  const size_t columns = out.shape.columns();
  const size_t positions = tokens.shape.columns();
  GXP_ASSERT(token_table.shape.columns() == columns);
  GXP_ASSERT(position_table.memory.data == nullptr || (position_table.shape.rows() >= positions &&
                                                       position_table.shape.columns() == columns));
  const CudaTokenRows which = {rows, columns, cuda_indices(tokens, rows), token_table.shape.rows(),
                               queue_.outside_flag()};
  check_cuda(
      launch_embedding_forward(queue_.stream(), which, cuda_vector<float>(out, rows * columns),
                               array_of(token_table), array_of(position_table), positions),
      "launch embedding_forward");
}

void CudaTokens::embedding_backward(const Tensor& dtoken_table, const Tensor& dposition_table,
                                    const ConstTensor& dout, const ConstTensor& tokens) {
  const size_t rows = dout.shape.rows();
  const size_t columns = dout.shape.columns();
  const size_t positions = tokens.shape.columns();
  const float* const from = cuda_vector<float>(dout, rows * columns);
  if (dtoken_table.memory.data != nullptr) {
    const size_t vocabulary = dtoken_table.shape.rows();
    const CudaTokenRows which = {rows, columns, cuda_indices(tokens, rows), vocabulary,
                                 queue_.outside_flag()};
    auto* const order = queue_.scratch_of<int32_t>(token_order_elements(rows));
    check_cuda(launch_sort_tokens(queue_.stream(), which, order), "launch embedding_backward");
    check_cuda(
        launch_add_token_rows(queue_.stream(), which,
                              cuda_vector<float>(dtoken_table, vocabulary * columns), from, order),
        "launch embedding_backward");
  }
  if (dposition_table.memory.data != nullptr && rows > 0) {
    const size_t known = dposition_table.shape.rows();
    GXP_ASSERT(known >= positions);
    check_cuda(launch_add_position_rows(queue_.stream(), rows / positions, positions * columns,
                                        cuda_vector<float>(dposition_table, known * columns), from),
               "launch embedding_backward");
  }
}

void CudaTokens::classifier(const Tensor& logits, const Tensor& losses, const ConstTensor& targets,
                            float scale) {
  const size_t rows = logits.shape.rows();
  const CudaTargets which = {rows, logits.shape.columns(), cuda_indices(targets, rows),
                             cuda_vector<float>(losses, rows), queue_.outside_flag()};
  check_cuda(launch_classifier(queue_.stream(), which, array_of(logits), scale),
             "launch classifier");
}

void CudaTokens::classifier_loss(const Tensor& losses, const ConstTensor& logits,
                                 const ConstTensor& targets) {
  const size_t rows = logits.shape.rows();
  const CudaTargets which = {rows, logits.shape.columns(), cuda_indices(targets, rows),
                             cuda_vector<float>(losses, rows), queue_.outside_flag()};
  check_cuda(launch_classifier_loss(queue_.stream(), which, array_of(logits)),
             "launch classifier_loss");
}

void CudaTokens::rotate(const Tensor& x, int head_size, double theta, float direction) {
  GXP_ASSERT(x.shape.rank() == 3 && head_size > 0 && head_size % 2 == 0);
  const size_t positions = x.shape[1];
  const size_t heads = x.shape.columns() / static_cast<size_t>(head_size);
  GXP_ASSERT(heads * static_cast<size_t>(head_size) == x.shape.columns());
  const size_t pairs = static_cast<size_t>(head_size) / 2;
  prepare_angles({positions, pairs, theta});
  const auto* const cosines = reinterpret_cast<const float*>(angles_.memory().data);
  const CudaRotation rotation = {x.shape.rows(),
                                 positions,
                                 heads,
                                 pairs,
                                 array_of(x),
                                 cosines,
                                 cosines + angles_of_.positions * pairs,
                                 direction};
  check_cuda(launch_rotate(queue_.stream(), rotation), "launch rope");
}

void CudaTokens::prepare_angles(const Angles& wanted) {
  const bool are_same = angles_of_.pairs == wanted.pairs && angles_of_.theta == wanted.theta;
  if (are_same && angles_of_.positions >= wanted.positions) return;
  const size_t count = wanted.positions * wanted.pairs;
  std::vector<float> table(2 * count);  // the cosines, then the sines
  for (size_t i = 0; i < count; ++i) {
    const double angle =
        rope_angle(i / wanted.pairs, i % wanted.pairs, 2 * wanted.pairs, wanted.theta);
    table[i] = float(std::cos(angle));
    table[count + i] = float(std::sin(angle));
  }
  angles_ = queue_.upload(table);
  angles_of_ = wanted;
}

}  // namespace gxp
