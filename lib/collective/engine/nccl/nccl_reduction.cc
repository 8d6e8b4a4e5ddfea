#include "lib/collective/engine/nccl/nccl_reduction.h"

#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include "lib/base/error.h"

namespace gxp {
namespace {

// The operations that NCCL has by itself.
std::optional<NcclOp> built_in(ReduceOp op) {
  constexpr std::array kOps = {NcclOp::kSum, NcclOp::kProd, NcclOp::kMin, NcclOp::kMax,
                               NcclOp::kAvg};
  static_assert(size_t(ReduceOp::kAvg) + 1 == kOps.size());
  return size_t(op) < kOps.size() ? std::optional(kOps[size_t(op)]) : std::nullopt;
}

struct Scalar {
  alignas(8) std::array<std::byte, 8> bytes{};
};

// The factor as an element of the type.
Scalar scalar_of(double factor, DType dtype) {
  Scalar scalar;
  const auto put = [&](auto value) { std::memcpy(scalar.bytes.data(), &value, sizeof value); };
  switch (dtype) {
    case DType::kF64:
      put(factor);
      break;
    case DType::kF32:
      put(float(factor));
      break;
    case DType::kF16:
      put(Float16(float(factor)));
      break;
    case DType::kBF16:
      put(BFloat16(float(factor)));
      break;
    default:  // little-endian: the low bytes are the narrower types'
      put(int64_t(std::llround(factor)));
  }
  return scalar;
}

}  // namespace

void check_nccl_reduction(const Call& call) {
  if (!reduces(call.collective) || built_in(call.op)) return;
  if (call.op != ReduceOp::kPreMulSum)
    fail(ErrorKind::kUsage, "{}: NCCL has no {}; use engine 'native'", to_string(call.collective),
         to_string(call.op));
  const bool integers = nccl_type(call.dtype) < NcclType::kFloat16;
  if (integers && std::abs(call.factor) < 1)
    fail(ErrorKind::kUsage, "{}: NCCL cannot scale {} by {}; use engine 'native'",
         to_string(call.collective), to_string(call.dtype), call.factor);
}

NcclReduction::NcclReduction(const NcclLibrary& library, NcclComm* comm, const Call& call)
    : nccl_(library.functions()), comm_(comm) {
  if (const auto op = built_in(call.op)) {
    op_ = *op;
    return;
  }
  Scalar factor = scalar_of(call.factor, call.dtype);
  library.check(nccl_.create_pre_mul_sum(&op_, factor.bytes.data(), nccl_type(call.dtype),
                                         kNcclScalarOnHost, comm_),
                "make a premultiplied sum in NCCL");
  created_ = true;
}

NcclReduction::~NcclReduction() {
  if (created_) nccl_.destroy_op(op_, comm_);
}

}  // namespace gxp
