// gxp's reductions as NCCL knows them.
#pragma once

#include "lib/collective/algorithm/call.h"
#include "lib/collective/engine/nccl/nccl_library.h"

namespace gxp {

// kUsage: NCCL does not support the call's reduction. It has nothing bitwise or logical, and
// multiplies integers by integers only.
void check_nccl_reduction(const Call& call);

// The reduction that a call passes to NCCL; lives until the call has been queued. Borrows both.
class NcclReduction {
 public:
  NcclReduction(const NcclLibrary& library, NcclComm* comm, const Call& call);
  NcclReduction(const NcclReduction&) = delete;
  NcclReduction& operator=(const NcclReduction&) = delete;
  ~NcclReduction();
  [[nodiscard]] NcclOp get() const { return op_; }

 private:
  const NcclFunctions& nccl_;
  NcclComm* comm_;
  NcclOp op_ = NcclOp::kSum;
  bool created_ = false;
};

}  // namespace gxp
