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

// Both variants of a product with an epilogue, to be timed: `fused` into the product, and `apart`,
// by kernels after it. Each may run several times, and write to `memory`, which has `bytes` bytes.
struct FusionTrial {
  size_t bytes = 0;
  std::function<void(void*memory)> fused, apart;
};

class CublasProducts {
 public:
  static constexpr size_t kWorkspaceBytes = kProductWorkspaceBytes;

  // `cache`: the file of choice_cache.h, for which each product's algorithms are timed once; "":
  // the first that runs, in cuBLASLt's order, the best first. `tf32`: f32 operands are multiplied
  // on tensor cores, with 10 bits of their fractions. `queue` outlives it.
  CublasProducts(CudaQueue& queue, const std::string& cache, bool tf32 = false);
  ~CublasProducts();
  // Queues the product. kDevice if cuBLASLt has no algorithm for it. If the GPU has no memory for
  // the trials (the run's plan does not include it), a warning is logged and the product is done as
  // if there were no cache.
  void multiply(const Product& product, const ProductPointers& pointers);
  // Whether cuBLASLt has an algorithm for the product. Depending on its version, the shapes and the
  // alignments, it has none for some epilogues.
  bool knows(const Product& product, const ProductPointers& pointers);
  // Whether to fuse the product's epilogue: if cuBLASLt can, unless, with a cache, `fused` was
  // timed to be slower than `apart`.
  bool fuses(const Product& product, const ProductPointers& pointers, const FusionTrial& trial);
  // The times of cuBLASLt's algorithms in milliseconds, in its order; none for algorithms that
  // fail. kDevice: no memory for the trial.
  std::vector<float> candidate_times(const Product& product, const ProductPointers& pointers);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gxp
