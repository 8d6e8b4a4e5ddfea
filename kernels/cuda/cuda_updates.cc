#include "kernels/cuda/cuda_updates.h"

#include "kernels/cuda/sums_launch.h"
#include "kernels/cuda/updates_launch.h"
#include "kernels/math/adamw_factors.h"
#include "kernels/math/update_factors.h"
#include "lib/device/cuda_check.h"

namespace gxp {

void CudaUpdates::adamw(const Tensor& weights, const Tensor& first, const Tensor& second,
                        const ConstTensor& gradients, const AdamWStep& step) {
  const size_t count = weights.count();
  GXP_ASSERT(gradients.count() == count);
  const CudaAdamWArrays arrays = {cuda_vector<float>(weights, count),
                                  cuda_vector<float>(first, count),
                                  cuda_vector<float>(second, count), array_of(gradients)};
  check_cuda(launch_adamw(queue_.stream(), count, arrays, adamw_factors(step)), "launch adamw");
}

void CudaUpdates::sgd(const Tensor& weights, const Tensor& momentum, const ConstTensor& gradients,
                      const SgdStep& step) {
  const size_t count = weights.count();
  GXP_ASSERT(gradients.count() == count);
  const SgdFactors factors = {momentum_factors(step.momentum), float(step.lr),
                              float(step.weight_decay)};
  check_cuda(launch_sgd(queue_.stream(), count, cuda_vector<float>(weights, count),
                        cuda_vector_or_null<float>(momentum, count), array_of(gradients), factors),
             "launch sgd");
}

void CudaUpdates::lion(const Tensor& weights, const Tensor& momentum, const ConstTensor& gradients,
                       const LionStep& step) {
  const size_t count = weights.count();
  GXP_ASSERT(gradients.count() == count);
  check_cuda(
      launch_lion(queue_.stream(), count, cuda_vector<float>(weights, count),
                  cuda_vector<float>(momentum, count), array_of(gradients), lion_factors(step)),
      "launch lion");
}

void CudaUpdates::momentum(const Tensor& direction, const Tensor& momentum,
                           const ConstTensor& gradients, const MomentumStep& step) {
  const size_t count = direction.count();
  GXP_ASSERT(gradients.count() == count);
  check_cuda(launch_momentum(queue_.stream(), count, cuda_vector<float>(direction, count),
                             cuda_vector<float>(momentum, count), array_of(gradients),
                             momentum_factors(step)),
             "launch momentum");
}

void CudaUpdates::sums_of_squares(const Tensor& of_rows, const Tensor& of_columns,
                                  const ConstTensor& x) {
  const size_t rows = x.shape.rows();
  const size_t columns = x.shape.columns();
  const float* const from = cuda_vector<float>(x, rows * columns);
  if (double* const sums = cuda_vector_or_null<double>(of_rows, rows); sums != nullptr)
    check_cuda(launch_row_squares(queue_.stream(), rows, columns, sums, from),
               "launch sums_of_squares");
  if (double* const sums = cuda_vector_or_null<double>(of_columns, columns); sums != nullptr)
    check_cuda(launch_column_squares(queue_.stream(), rows, columns, sums, from),
               "launch sums_of_squares");
}

void CudaUpdates::scale_rows_and_columns(const Tensor& out, const ConstTensor& x,
                                         const ConstTensor& rows, const ConstTensor& columns) {
  const size_t height = x.shape.rows();
  const size_t width = x.shape.columns();
  check_cuda(launch_scale(queue_.stream(), height, width, cuda_vector<float>(out, height * width),
                          cuda_vector<float>(x, height * width), cuda_vector<float>(rows, height),
                          cuda_vector<float>(columns, width)),
             "launch scale_rows_and_columns");
}

double CudaUpdates::sum_of_squares(const ConstTensor& x) { return sum(x, true); }
double CudaUpdates::sum(const ConstTensor& x) { return sum(x, false); }

void CudaUpdates::add_sum_of_squares(const Tensor& total, const ConstTensor& x) {
  auto* const partial = queue_.scratch_of<double>(partial_sums_of(x.count()));
  check_cuda(launch_add_sum(queue_.stream(), x.count(), cuda_vector<double>(total, 1), partial,
                            array_of(x), true),
             "launch add_sum_of_squares");
}

double CudaUpdates::sum(const ConstTensor& x, bool of_squares) {
  auto* const total = queue_.scratch_of<double>(1 + partial_sums_of(x.count()));
  check_cuda(cudaMemsetAsync(total, 0, sizeof *total, queue_.stream()), "clear a sum");
  check_cuda(launch_add_sum(queue_.stream(), x.count(), total, total + 1, array_of(x), of_squares),
             "launch sum");
  return queue_.read(total);
}

}  // namespace gxp
