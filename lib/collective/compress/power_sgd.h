// PowerSGD: Vogels, Karimireddy & Jaggi, arXiv:1905.13727, algorithm 2 with algorithm 1 inside.
//
// Each matrix M(m, n) of the buffer is summed over the ranks as a product of P(m, r) and Q(n, r):
//   M = gradient + kept;   P = all-reduce(M Q);   orthogonalise P;   kept = M - P (M^T P)^T
//   Q = all-reduce(M^T P); the result is P Q^T; Q is where the next call starts (warm start).
// What is in no matrix, and matrices that P and Q would not make smaller, are all-reduced exactly,
// together with the P's. So a call is two all-reduces over all ranks.
//   Bits     P is orthogonalised in f64 by every rank alike, in code of one instruction set.
//   Cost     6 m n r operations a matrix on one thread; (m + n) r + (rest) elements are
//   all-reduced. Memory   4 bytes per element, P and Q.
#pragma once

#include <span>
#include <vector>

#include "lib/collective/compress/compressed.h"

namespace gxp {

class PowerSgdAllReduce final : public CompressedAllReduce {
 public:
  // Throws kUnavailable for another dtype than f32.
  PowerSgdAllReduce(const CompressionOptions& options, const BufferShape& shape, HostGroups& groups,
                    Device& device);
  void all_reduce(Memory data, ReduceOp op) override;
  [[nodiscard]] uint64_t wire_bytes() const override;

 private:
  struct Matrix {
    size_t begin, rows, columns, rank;
    size_t p, q;  // where P (row by row) and Q^T (row by row) begin
  };
  void add_matrices(const BufferShape& shape, size_t rank);
  void add_rest(Range range);
  void fill_q(const Matrix& matrix);
  void multiply_by_q(const Matrix& matrix);
  void multiply_by_p(const Matrix& matrix);
  void expand(const Matrix& matrix, std::span<float> data);
  void move_rest(std::span<float> data, bool into_p);

  Communicator& comm_;
  size_t count_;
  std::vector<Matrix> matrices_;
  std::vector<Range> rest_;
  size_t p_count_ = 0;  // of the matrices; the rest follows
  size_t q_count_ = 0;
  size_t rest_count_ = 0;
  Buffer kept_buffer_, p_buffer_, q_buffer_;
  std::span<float> kept_, p_, q_;
};

// Makes the columns of p(rows, columns), row by row, orthonormal by modified Gram-Schmidt, twice. A
// column that depends on those before it becomes zero.
void orthogonalise(std::span<float> p, size_t columns);

}  // namespace gxp
