// The products of kernels/ops.h on a GPU: types that cuBLASLt does not take are converted first,
// and operands of 8 bits are made.
#pragma once

#include <string>

#include "kernels/cuda/gemm/cublas_products.h"
#include "kernels/cuda/gemm/cuda_float8.h"
#include "kernels/ops.h"

namespace gxp {

class CudaGemm : public virtual Ops {
 public:
  // `cache`, `tf32`: as CublasProducts takes them. `float8_fast_sums`: Product::fast_sums of the
  // forward pass's products.
  CudaGemm(CudaQueue& queue, const std::string& cache, bool tf32, bool float8_fast_sums)
      : queue_(queue), products_(queue, cache, tf32), float8_fast_sums_(float8_fast_sums) {}
  void matmul(Tensor out, ConstTensor a, ConstTensor b, const MatmulOptions& options) override;
  // Where types and sizes allow it and CublasProducts::fuses() chooses it, the product's epilogue
  // computes the GELU; into scratch memory if the caller left it out.
  void linear_gelu(const LinearGelu& layer) override;
  // A dout of f32 is rounded to the weight's type once, for both products. In 8 bits, dout is read
  // once for the codes of both, and once before that for its largest value unless it has
  // Tensor::largest. If CublasProducts::fuses() chooses it, dweight's product also computes dbias.
  void linear_backward(const LinearBackward& layer) override;

 private:
  ConstTensor converted(const ConstTensor& tensor, DType type, size_t& scratch_used);
  // With its bias, which is added after the product where cuBLASLt has no algorithm that does.
  void multiply(const Product& product, const ProductPointers& pointers, DType bias_type);
  void gelu_apart(const LinearGelu& layer);
  void differentiate_gelu(const LinearBackward& layer, const ConstTensor& dout);
  void slope_of_gelu(const LinearBackward& layer, void* value);
  void multiply_float8(const Tensor& out, const ConstTensor& a, const ConstTensor& b,
                       const MatmulOptions& options);
  void multiply_codes(const Tensor& out, const Float8Matrix& a, const Float8Matrix& b, size_t k,
                      const MatmulOptions& options);
  void differentiate(const LinearBackward& layer);
  // The gradients of the layer's parameters, `dout` rounded as the weight.
  void differentiate_apart(const LinearBackward& layer, const ConstTensor& dout);
  void differentiate_weight_and_bias(const LinearBackward& layer);
  ProductPointers pointers_of_sums(const LinearBackward& layer);
  void differentiate_bias(const LinearBackward& layer);
  void differentiate_float8(const LinearBackward& layer);

  CudaQueue& queue_;
  CublasProducts products_;
  const bool float8_fast_sums_;
};

}  // namespace gxp
