// What lib/collective/engine/nccl/nccl_library.h declares, held against NCCL's own header where
// that is installed: to compile is the test.
#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "lib/collective/engine/nccl/nccl_library.h"

namespace gxp {
namespace {

static_assert(sizeof(NcclResult) == sizeof(ncclResult_t));
static_assert(int(NcclResult::kSuccess) == ncclSuccess);
static_assert(int(NcclResult::kCudaError) == ncclUnhandledCudaError);
static_assert(int(NcclResult::kSystemError) == ncclSystemError);
static_assert(int(NcclResult::kInternalError) == ncclInternalError);
static_assert(int(NcclResult::kInvalidArgument) == ncclInvalidArgument);
static_assert(int(NcclResult::kInvalidUsage) == ncclInvalidUsage);
static_assert(int(NcclResult::kRemoteError) == ncclRemoteError);
static_assert(int(NcclResult::kInProgress) == ncclInProgress);

static_assert(sizeof(NcclType) == sizeof(ncclDataType_t));
static_assert(int(NcclType::kInt8) == ncclInt8);
static_assert(int(NcclType::kUint8) == ncclUint8);
static_assert(int(NcclType::kInt32) == ncclInt32);
static_assert(int(NcclType::kInt64) == ncclInt64);
static_assert(int(NcclType::kFloat16) == ncclFloat16);
static_assert(int(NcclType::kFloat32) == ncclFloat32);
static_assert(int(NcclType::kFloat64) == ncclFloat64);
static_assert(int(NcclType::kBfloat16) == ncclBfloat16);

static_assert(sizeof(NcclOp) == sizeof(ncclRedOp_t));
static_assert(int(NcclOp::kSum) == ncclSum);
static_assert(int(NcclOp::kProd) == ncclProd);
static_assert(int(NcclOp::kMax) == ncclMax);
static_assert(int(NcclOp::kMin) == ncclMin);
static_assert(int(NcclOp::kAvg) == ncclAvg);
static_assert(kNcclScalarOnHost == ncclScalarHostImmediate);
static_assert(kNcclNoColor == NCCL_SPLIT_NOCOLOR);

static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));
static_assert(alignof(NcclUniqueId) == alignof(ncclUniqueId));

static_assert(alignof(NcclConfig) == alignof(ncclConfig_t));
static_assert(sizeof(NcclConfig) <= sizeof(ncclConfig_t));
static_assert(offsetof(NcclConfig, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(NcclConfig, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(NcclConfig, cga_cluster_size) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(NcclConfig, min_ctas) == offsetof(ncclConfig_t, minCTAs));
static_assert(offsetof(NcclConfig, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(NcclConfig, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(NcclConfig, split_share) == offsetof(ncclConfig_t, splitShare));
static_assert(NCCL_CONFIG_UNDEF_INT == INT_MIN);

// Whether arguments of these two types are passed in the same way and mean the same: pointers to
// whatever, numbers and enumerations of one size, structs of one size.
template <class A, class B>
constexpr bool kAlike = (std::is_pointer_v<A> && std::is_pointer_v<B>) ||
                        (std::is_class_v<A> && std::is_class_v<B> && sizeof(A) == sizeof(B)) ||
                        ((std::is_enum_v<A> ||
                          std::is_integral_v<A>)&&(std::is_enum_v<B> ||
                                                   std::is_integral_v<B>)&&sizeof(A) == sizeof(B));

template <class Ours, class Theirs>
struct SameCall : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct SameCall<R (*)(A...), S (*)(B...)>
    : std::bool_constant<kAlike<R, S> && (kAlike<A, B> && ...)> {
};

#define GXP_SAME(ours, theirs) \
  static_assert(SameCall<decltype(NcclFunctions::ours), decltype(&theirs)>())
GXP_SAME(get_version, ncclGetVersion);
GXP_SAME(get_error_string, ncclGetErrorString);
GXP_SAME(get_last_error, ncclGetLastError);
GXP_SAME(get_unique_id, ncclGetUniqueId);
GXP_SAME(init_rank, ncclCommInitRankConfig);
GXP_SAME(split, ncclCommSplit);
GXP_SAME(finalize, ncclCommFinalize);
GXP_SAME(destroy, ncclCommDestroy);
GXP_SAME(abort, ncclCommAbort);
GXP_SAME(get_async_error, ncclCommGetAsyncError);
GXP_SAME(count, ncclCommCount);
GXP_SAME(user_rank, ncclCommUserRank);
GXP_SAME(create_pre_mul_sum, ncclRedOpCreatePreMulSum);
GXP_SAME(destroy_op, ncclRedOpDestroy);
GXP_SAME(group_start, ncclGroupStart);
GXP_SAME(group_end, ncclGroupEnd);
GXP_SAME(all_reduce, ncclAllReduce);
GXP_SAME(reduce, ncclReduce);
GXP_SAME(reduce_scatter, ncclReduceScatter);
GXP_SAME(all_gather, ncclAllGather);
GXP_SAME(broadcast, ncclBroadcast);
GXP_SAME(send, ncclSend);
GXP_SAME(recv, ncclRecv);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 1)
GXP_SAME(mem_alloc, ncclMemAlloc);
GXP_SAME(mem_free, ncclMemFree);
GXP_SAME(register_memory, ncclCommRegister);
GXP_SAME(deregister_memory, ncclCommDeregister);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3)
GXP_SAME(register_window, ncclCommWindowRegister);
GXP_SAME(deregister_window, ncclCommWindowDeregister);
static_assert(kNcclSymmetricWindow == NCCL_WIN_COLL_SYMMETRIC);
#endif
#undef GXP_SAME

}  // namespace
}  // namespace gxp
