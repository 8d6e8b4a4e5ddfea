#include "kernels/cuda/cuda_elementwise.h"

#include "kernels/cuda/elementwise_launch.h"
#include "lib/device/cuda_check.h"

namespace gxp {

void CudaElementwise::gelu_forward(const Tensor& out, const ConstTensor& x) {
  GXP_ASSERT(out.count() == x.count() && out.dtype == x.dtype);
  check_cuda(launch_gelu_forward(queue_.stream(), x.count(), array_of(out), array_of(x)),
             "launch gelu_forward");
}

void CudaElementwise::gelu_backward(const Tensor& dx, const Tensor& activated,
                                    const ConstTensor& dout, const ConstTensor& x) {
  for (const ConstTensor& tensor : {ConstTensor(dx), ConstTensor(activated), dout})
    GXP_ASSERT(tensor.count() == x.count() && tensor.dtype == x.dtype);
  check_cuda(launch_gelu_backward(queue_.stream(), x.count(), array_of(dx), array_of(activated),
                                  array_of(dout), array_of(x)),
             "launch gelu_backward");
}

void CudaElementwise::swiglu_forward(const Tensor& out, const ConstTensor& gate,
                                     const ConstTensor& up) {
  for (const ConstTensor& tensor : {gate, up})
    GXP_ASSERT(tensor.count() == out.count() && tensor.dtype == out.dtype);
  check_cuda(launch_swiglu_forward(queue_.stream(), out.count(), array_of(out), array_of(gate),
                                   array_of(up)),
             "launch swiglu_forward");
}

void CudaElementwise::swiglu_backward(const Tensor& dout, const Tensor& gate, const Tensor& up) {
  for (const Tensor& tensor : {gate, up})
    GXP_ASSERT(tensor.count() == dout.count() && tensor.dtype == dout.dtype);
  check_cuda(launch_swiglu_backward(queue_.stream(), dout.count(), array_of(dout), array_of(gate),
                                    array_of(up)),
             "launch swiglu_backward");
}

void CudaElementwise::convert(const Tensor& out, const ConstTensor& x) {
  GXP_ASSERT(out.count() == x.count());
  check_cuda(launch_convert(queue_.stream(), x.count(), array_of(out), array_of(x)),
             "launch convert");
}

void CudaElementwise::add(const Tensor& out, const ConstTensor& a, const ConstTensor& b) {
  GXP_ASSERT(out.count() == a.count() && out.count() == b.count());
  check_cuda(launch_add(queue_.stream(), out.count(), array_of(out), array_of(a), array_of(b)),
             "launch add");
}

void CudaElementwise::round_stochastically(const Tensor& out, const ConstTensor& x,
                                           const RandomBits& bits) {
  GXP_ASSERT(out.dtype == DType::kBF16 && out.count() == x.count());
  check_cuda(launch_round_stochastically(queue_.stream(), x.count(), array_of(out).data,
                                         cuda_vector<float>(x, x.count()), bits),
             "launch round_stochastically");
}

void CudaElementwise::fill(const Tensor& out, float value) {
  check_cuda(launch_fill(queue_.stream(), out.count(), cuda_vector<float>(out, out.count()), value),
             "launch fill");
}

}  // namespace gxp
