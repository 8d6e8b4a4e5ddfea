// Matrix products by cuBLASLt, with its epilogues.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_queue.h"
#include "kernels/ops.h"
#include "kernels/product_scratch.h"
#include "lib/base/dtype.h"

namespace gxp {

enum class ProductEnd : uint8_t {
  kPlain,
  kBias,          // + a vector (n), of the output's type
  kBiasGelu,      // the same, of which the GELU is stored, and itself as a matrix (m, n) of halves
  kGeluSlope,     // * gelu'(such a matrix)
  kBiasGradient,  // unchanged; sums over k of b's columns are stored, a vector (n) of out's type
};

// Everything that the choice of an algorithm depends on: out(m, n) = op(a) op(b) [+ c], with `end`.
struct Product {
  size_t m, n, k;
  bool transpose_a, transpose_b, adds;
  ProductEnd end;
  DType operands, out;
  std::array<uint32_t, 4> alignments;  // a, b, out and c, the vector or matrix of `end`
  // In place of `operands`: codes, of b alone transposed; the bias is bf16.
  Float8Operands float8 = {};
  // For codes: tensor cores keep sums in fewer bits than f32's 24, and add them up faster.
  bool fast_sums = false;
  auto operator<=>(const Product&) const = default;
};

// Where its matrices lie.
struct ProductPointers {
  const void *a, *b;
  const void* c;     // what is added
  const void* bias;  // the vector of `end` that is read
  void* argument;    // its matrix, or its vector that is stored
  void* out;
  std::byte* workspace;             // CublasProducts::kWorkspaceBytes
  const float* a_factor = nullptr;  // of float8, in the GPU's memory
  const float* b_factor = nullptr;
};

// The two ways to do what a product does on its way out, as trials that may be repeated: with it,
// and by kernels after it. `bytes` of memory that both may write are theirs.
struct FusionTrial {
  size_t bytes = 0;
  std::function<void(void*memory)> fused, apart;
};

class CublasProducts {
 public:
  static constexpr size_t kWorkspaceBytes = kProductWorkspaceBytes;

  // `cache`: the file of choice_cache.h, for which each product's algorithms are timed once; "":
  // the first that runs, in cuBLASLt's order, the best first. `tf32`: of operands of f32, 10 bits
  // of the fraction count, by tensor cores. `queue` outlives it.
  CublasProducts(CudaQueue& queue, const std::string& cache, bool tf32 = false);
  ~CublasProducts();
  // Queues it. kDevice if cuBLASLt knows no way. If the GPU has no memory for the trials (the run's
  // plan does not include it), a warning is logged and the product is done as if there were no
  // cache.
  void multiply(const Product& product, const ProductPointers& pointers);
  // Whether cuBLASLt knows a way. It may not know one for some ends, by shapes, alignments and
  // versions.
  bool knows(const Product& product, const ProductPointers& pointers);
  // Whether the product's end is fused: if cuBLASLt knows a way and, with a cache, unless it was
  // timed to be slower than apart.
  bool fuses(const Product& product, const ProductPointers& pointers, const FusionTrial& trial);
  // The times of cuBLASLt's algorithms in milliseconds, in its order; none for algorithms that
  // fail. kDevice: no memory for the trial.
  std::vector<float> candidate_times(const Product& product, const ProductPointers& pointers);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gxp
