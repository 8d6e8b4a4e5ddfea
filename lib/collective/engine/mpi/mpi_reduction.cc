#include "lib/collective/engine/mpi/mpi_reduction.h"

#include <array>
#include <cstddef>

#include "lib/collective/engine/mpi/mpi_job.h"

namespace gxp {
namespace {

constexpr size_t kTypes = 8;
constexpr size_t kOps = 12;

// MPI tells a reduction neither of its operation nor of f16, so there is a function for each.
template <DType dtype, ReduceOp op>
void fold_for_mpi(void* from, void* into, int* count, MPI_Datatype* /*type*/) {
  const size_t bytes = size_t(*count) * size_of(dtype);
  fold(Memory{static_cast<std::byte*>(into), bytes}, Memory{static_cast<std::byte*>(from), bytes},
       dtype, op);
}

template <size_t... index>
constexpr std::array<MPI_User_function*, sizeof...(index)> make_folds(
    std::index_sequence<index...> /*unused*/) {
  return {&fold_for_mpi<DType(index / kOps), ReduceOp(index % kOps)>...};
}
constexpr auto kFolds = make_folds(std::make_index_sequence<kTypes * kOps>());
static_assert(size_t(DType::kU8) + 1 == kTypes && size_t(ReduceOp::kLogicalXor) + 1 == kOps);

// MPI_OP_NULL: MPI has none that means the same.
MPI_Op own_op(DType dtype, ReduceOp op) {
  const bool half = dtype == DType::kF16 || dtype == DType::kBF16;
  const bool floating = half || dtype == DType::kF32 || dtype == DType::kF64;
  const bool byte = size_of(dtype) == 1;  // Open MPI 4.1's vectors saturate where sums should wrap
  if (half) return MPI_OP_NULL;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
    case ReduceOp::kPreMulSum:
      return byte ? MPI_OP_NULL : MPI_SUM;
    case ReduceOp::kProd:
      return byte ? MPI_OP_NULL : MPI_PROD;
    case ReduceOp::kMin:  // of floats: a NaN must win, and -0 is below +0
      return floating ? MPI_OP_NULL : MPI_MIN;
    case ReduceOp::kMax:
      return floating ? MPI_OP_NULL : MPI_MAX;
    case ReduceOp::kBitAnd:
      return MPI_BAND;
    case ReduceOp::kBitOr:
      return MPI_BOR;
    case ReduceOp::kBitXor:
      return MPI_BXOR;
    case ReduceOp::kLogicalAnd:
      return MPI_LAND;
    case ReduceOp::kLogicalOr:
      return MPI_LOR;
    case ReduceOp::kLogicalXor:
      return MPI_LXOR;
  }
  return MPI_OP_NULL;
}

}  // namespace

MPI_Datatype mpi_type(DType dtype) {
  const std::array<MPI_Datatype, kTypes> types = {MPI_DOUBLE,   MPI_FLOAT,   MPI_UINT16_T,
                                                  MPI_UINT16_T, MPI_INT64_T, MPI_INT32_T,
                                                  MPI_INT8_T,   MPI_UINT8_T};
  return types[size_t(dtype)];
}

MPI_Op MpiReductions::get(DType dtype, ReduceOp op) {
  if (const MPI_Op own = own_op(dtype, op); own != MPI_OP_NULL) return own;
  const auto [found, is_new] = made_.try_emplace({dtype, op}, MPI_OP_NULL);
  if (is_new) {
    MPI_User_function* const fold = kFolds[size_t(dtype) * kOps + size_t(op)];
    check_mpi(MPI_Op_create(fold, /*commute=*/1, &found->second), "define a reduction in MPI");
  }
  return found->second;
}

}  // namespace gxp
