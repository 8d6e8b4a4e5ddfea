// gxp's element types and reductions as MPI knows them. MPI's own reduction where it means the same
// as fold() (sums and products but for the bits of a NaN, most of integers), since MPIs have faster
// algorithms for those; otherwise a user-defined one that calls fold().
//   Threads  one at a time, as all of MPI.
#pragma once

#include <mpi.h>

#include <map>
#include <utility>

#include "kernels/reduce_op.h"
#include "lib/base/dtype.h"

namespace gxp {

// The MPI type that moves and reduces elements of this type; f16 and bf16 are 16-bit integers to
// MPI.
MPI_Datatype mpi_type(DType dtype);

// kAvg and kPreMulSum are sums, as in fold().
class MpiReductions {
 public:
  MpiReductions() = default;
  MpiReductions(const MpiReductions&) = delete;
  MpiReductions& operator=(const MpiReductions&) = delete;
  // The user-defined ones live until MPI's end.
  ~MpiReductions() = default;
  [[nodiscard]] MPI_Op get(DType dtype, ReduceOp op);

 private:
  std::map<std::pair<DType, ReduceOp>, MPI_Op> made_;
};

}  // namespace gxp
