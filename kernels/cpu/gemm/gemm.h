// The CPU's matrix product, the operation that training spends its time in.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "lib/base/dtype.h"
#include "lib/device/thread_pool.h"

namespace gxp {

// c(m, n) = op(a)(m, k) op(b)(k, n) [+ c] [+ bias] [+ residual], added in this order.
// Row-major; a row of a matrix as it is stored begins ld... elements after the one before it.
// a, b and c are f32, bf16 or f16 each, but not both half types in one product.
struct GemmArgs {
  size_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  size_t lda = 0;
  DType a_type = DType::kF32;
  bool transpose_a = false;  // a is stored (k, m)
  const void* b = nullptr;
  size_t ldb = 0;
  DType b_type = DType::kF32;
  bool transpose_b = false;  // b is stored (n, k)
  void* c = nullptr;
  size_t ldc = 0;
  DType c_type = DType::kF32;
  bool accumulate = false;          // + c
  const float* bias = nullptr;      // (n), added to every row; none if null
  const float* residual = nullptr;  // (m, n) with rows of ldc, may be an f32 c; none if null

  // If one operand has a half type, the other's elements are rounded to it before the
  // multiplication. Products are added in f32; a c of a half type is rounded once.
  [[nodiscard]] DType product_type() const { return a_type == DType::kF32 ? b_type : a_type; }
  // Generation's products: they are made by vectors, in another order than others.
  [[nodiscard]] bool is_of_few_rows() const { return m <= 4 && !transpose_a && a_type == b_type; }
};

struct GemmKernel;   // gemm_kernel.h
struct GemmKernels;  // gemm_choice.h

// Runs matrix products on `pool`, which must outlive it.
//   Threads  one run() at a time.
//   Order    an element of c is computed by one thread and its k terms are added in an order that
//            depends on k, the kernel and is_of_few_rows() alone: same bits for any thread count.
//   Rounding what multiplies bf16 in pairs (gemm_pairs.inc; more than a few rows) takes denormal
//            operands and results for zero.
//   Aliasing c overlaps neither a nor b.
//   Cost     one fork and join of the pool. Scratch, 4 MiB a thread, is allocated by the
//            constructor; run() allocates nothing.
//   Source   packing and blocking after Goto & van de Geijn, ACM TOMS 34(3), 2008; see gemm.inc.
class Gemm {
 public:
  Gemm(ThreadPool& pool, const GemmKernels& kernels);
  void run(const GemmArgs& args);

 private:
  struct Free {
    void operator()(float* scratch) const;
  };
  ThreadPool& pool_;
  const GemmKernel& floats_;  // f32 and f16
  const GemmKernel& bf16_;
  std::vector<std::unique_ptr<float, Free>> scratch_;  // one a thread
};

}  // namespace gxp
