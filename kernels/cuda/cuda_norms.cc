#include "kernels/cuda/cuda_norms.h"

#include "kernels/cuda/norms_launch.h"
#include "lib/device/cuda_check.h"

namespace gxp {
namespace {

CudaNorm norm_of(const Tensor& out, const ConstTensor& x, const ConstTensor& weight,
                 const ConstTensor& bias) {
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  GXP_ASSERT(out.shape.rows() == rows && out.shape.columns() == columns);
  GXP_ASSERT(weight.count() == columns);
  return {rows,
          columns,
          array_of(out),
          cuda_vector<float>(x, rows * columns),
          array_of(weight),
          array_of(bias)};
}

CudaNorm layernorm_of(const Tensor& out, const ConstTensor& x, const ConstTensor& weight,
                      const ConstTensor& bias) {
  GXP_ASSERT(bias.count() == weight.count() && bias.dtype == weight.dtype);
  return norm_of(out, x, weight, bias);
}

CudaNormBackward backward_of(const Tensor& dx, const ConstTensor& dout, const ConstTensor& x,
                             const ConstTensor& rstd, const ConstTensor& weight) {
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  GXP_ASSERT(dout.shape.rows() == rows && dout.shape.columns() == columns);
  GXP_ASSERT(weight.count() == columns);
  return {rows,
          columns,
          cuda_vector<float>(dx, rows * columns),
          array_of(dout),
          cuda_vector<float>(x, rows * columns),
          nullptr,
          cuda_vector<float>(rstd, rows),
          array_of(weight)};
}

}  // namespace

void CudaNorms::bias_backward(const Tensor& dbias, const ConstTensor& dout) {
  const size_t rows = dout.shape.rows();
  const size_t columns = dout.shape.columns();
  const size_t blocks = column_sum_blocks(rows, columns);
  auto* const sums = cuda_vector<float>(dbias, columns);
  auto* const partial = queue_.scratch_of<float>(blocks * columns);
  check_cuda(launch_partial_columns(queue_.stream(), rows, columns, partial, array_of(dout)),
             "launch bias_backward");
  check_cuda(launch_add_columns(queue_.stream(), blocks, columns, columns, sums, partial),
             "launch bias_backward");
}

void CudaNorms::layernorm_forward(const Tensor& out, const Tensor& mean, const Tensor& rstd,
                                  const ConstTensor& x, const ConstTensor& weight,
                                  const ConstTensor& bias, float eps) {
  const CudaNorm norm = layernorm_of(out, x, weight, bias);
  check_cuda(launch_norm_forward(queue_.stream(), norm, cuda_vector<float>(mean, norm.rows),
                                 cuda_vector<float>(rstd, norm.rows), eps),
             "launch layernorm_forward");
}

void CudaNorms::layernorm_apply(const Tensor& out, const ConstTensor& x, const ConstTensor& mean,
                                const ConstTensor& rstd, const ConstTensor& weight,
                                const ConstTensor& bias) {
  const CudaNorm norm = layernorm_of(out, x, weight, bias);
  check_cuda(launch_norm_apply(queue_.stream(), norm, cuda_vector<float>(mean, norm.rows),
                               cuda_vector<float>(rstd, norm.rows)),
             "launch layernorm_apply");
}

void CudaNorms::layernorm_backward(const Tensor& dx, const Tensor& dweight, const Tensor& dbias,
                                   const ConstTensor& dout, const ConstTensor& x,
                                   const ConstTensor& mean, const ConstTensor& rstd,
                                   const ConstTensor& weight) {
  CudaNormBackward norm = backward_of(dx, dout, x, rstd, weight);
  norm.mean = cuda_vector<float>(mean, norm.rows);
  backward(norm, dweight, dbias);
}

void CudaNorms::rmsnorm_forward(const Tensor& out, const Tensor& rstd, const ConstTensor& x,
                                const ConstTensor& weight, float eps) {
  const CudaNorm norm = norm_of(out, x, weight, {});
  check_cuda(
      launch_norm_forward(queue_.stream(), norm, nullptr, cuda_vector<float>(rstd, norm.rows), eps),
      "launch rmsnorm_forward");
}

void CudaNorms::rmsnorm_apply(const Tensor& out, const ConstTensor& x, const ConstTensor& rstd,
                              const ConstTensor& weight) {
  const CudaNorm norm = norm_of(out, x, weight, {});
  check_cuda(launch_norm_apply(queue_.stream(), norm, nullptr, cuda_vector<float>(rstd, norm.rows)),
             "launch rmsnorm_apply");
}

void CudaNorms::rmsnorm_backward(const Tensor& dx, const Tensor& dweight, const ConstTensor& dout,
                                 const ConstTensor& x, const ConstTensor& rstd,
                                 const ConstTensor& weight) {
  backward(backward_of(dx, dout, x, rstd, weight), dweight, {});
}

void CudaNorms::backward(const CudaNormBackward& norm, const Tensor& dweight, const Tensor& dbias) {
  const size_t columns = norm.columns;
  const size_t blocks = norm_backward_blocks(norm.rows, columns);
  auto* const to_weight = cuda_vector_or_null<float>(dweight, columns);
  auto* const to_bias = cuda_vector_or_null<float>(dbias, columns);
  const bool sums = to_weight != nullptr || to_bias != nullptr;
  float* const partial = sums ? queue_.scratch_of<float>(blocks * 2 * columns) : nullptr;
  check_cuda(launch_norm_backward(queue_.stream(), norm, partial), "launch a norm's backward");
  const auto add = [&](float* to, size_t first) {
    if (to == nullptr) return;
    check_cuda(
        launch_add_columns(queue_.stream(), blocks, columns, 2 * columns, to, partial + first),
        "launch a norm's backward");
  };
  add(to_weight, 0);
  add(to_bias, columns);
}

}  // namespace gxp
