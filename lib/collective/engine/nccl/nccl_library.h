// NVIDIA's NCCL as found at run time: nothing links it, and nothing needs its header. These
// declarations are its ABI. tests/collective/nccl_abi_check.cc compares them with nccl.h if that is
// installed; nccl_versions.h has the features by version.
//   Threads  any, within NCCL's own rules for its calls.
#pragma once

#include <climits>
#include <compare>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/dtype.h"
#include "lib/base/error.h"

namespace gxp {

struct NcclComm;           // NCCL's own
struct NcclWindow;         // NCCL's own
using NcclStream = void*;  // a cudaStream_t

enum class NcclResult : int {
  kSuccess = 0,
  kCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum class NcclType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};

// Values above these name reductions that were created.
enum class NcclOp : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };

inline constexpr int kNcclScalarOnHost = 1;     // ncclScalarHostImmediate
inline constexpr int kNcclNoColor = -1;         // NCCL_SPLIT_NOCOLOR
inline constexpr int kNcclSymmetricWindow = 1;  // NCCL_WIN_COLL_SYMMETRIC

struct NcclUniqueId {
  char bytes[128];
};

// As of 2.18; newer ones take the size for what it is. nccl_config() fits it to a version.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 0;                // calls return at once; get_async_error reports their completion
  int cga_cluster_size = INT_MIN;  // INT_MIN: NCCL's default
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
};

// Null where the version lacks them (nccl_versions.h): split, and those on memory.
struct NcclFunctions {
  NcclResult (*get_version)(int*);
  const char* (*get_error_string)(NcclResult);
  const char* (*get_last_error)(NcclComm*);
  NcclResult (*get_unique_id)(NcclUniqueId*);
  NcclResult (*init_rank)(NcclComm**, int ranks, NcclUniqueId, int rank, NcclConfig*);
  NcclResult (*split)(NcclComm*, int color, int key, NcclComm**, NcclConfig*);
  NcclResult (*finalize)(NcclComm*);
  NcclResult (*destroy)(NcclComm*);
  NcclResult (*abort)(NcclComm*);
  NcclResult (*get_async_error)(NcclComm*, NcclResult*);
  NcclResult (*count)(const NcclComm*, int*);
  NcclResult (*user_rank)(const NcclComm*, int*);
  NcclResult (*create_pre_mul_sum)(NcclOp*, void* factor, NcclType, int residence, NcclComm*);
  NcclResult (*destroy_op)(NcclOp, NcclComm*);
  NcclResult (*group_start)();
  NcclResult (*group_end)();
  NcclResult (*all_reduce)(const void*, void*, size_t, NcclType, NcclOp, NcclComm*, NcclStream);
  NcclResult (*reduce)(const void*, void*, size_t, NcclType, NcclOp, int root, NcclComm*,
                       NcclStream);
  NcclResult (*reduce_scatter)(const void*, void*, size_t, NcclType, NcclOp, NcclComm*, NcclStream);
  NcclResult (*all_gather)(const void*, void*, size_t, NcclType, NcclComm*, NcclStream);
  NcclResult (*broadcast)(const void*, void*, size_t, NcclType, int root, NcclComm*, NcclStream);
  NcclResult (*send)(const void*, size_t, NcclType, int peer, NcclComm*, NcclStream);
  NcclResult (*recv)(void*, size_t, NcclType, int peer, NcclComm*, NcclStream);
  NcclResult (*mem_alloc)(void**, size_t);
  NcclResult (*mem_free)(void*);
  NcclResult (*register_memory)(const NcclComm*, void*, size_t, void** handle);
  NcclResult (*deregister_memory)(const NcclComm*, void* handle);
  NcclResult (*register_window)(NcclComm*, void*, size_t, NcclWindow**, int flags);
  NcclResult (*deregister_window)(NcclComm*, NcclWindow*);
};

struct NcclVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;
  friend auto operator<=>(const NcclVersion&, const NcclVersion&) = default;
};
// With nonblocking communicators, ncclCommFinalize and ncclCommInitRankConfig.
inline constexpr NcclVersion kOldestNccl{2, 14, 3};

// NCCL_VERSION_CODE: 2708 is 2.7.8, from 2.9 on 21801 is 2.18.1.
NcclVersion parse_nccl_version(int code);
std::string to_string(const NcclVersion& version);  // "2.18.1"

NcclType nccl_type(DType dtype);

// A loaded NCCL. It stays loaded until the process ends, since its threads may outlive any object.
class NcclLibrary {
 public:
  // `file` as dlopen() takes it. kUnavailable: there is none, it is older than kOldestNccl, or it
  // lacks a function.
  explicit NcclLibrary(const std::string& file = "libnccl.so.2");
  [[nodiscard]] const NcclFunctions& functions() const { return functions_; }
  [[nodiscard]] const NcclVersion& version() const { return version_; }
  // Unless kSuccess or kInProgress, throws with NCCL's own text: kPeer if another rank or the
  // network has failed, kDevice if the GPU has, kInternal if the call was wrong.
  void check(NcclResult result, std::string_view act) const;

 private:
  NcclFunctions functions_{};
  NcclVersion version_;
};

// The calls that this thread makes between the constructor and end() start together
// (ncclGroupStart()). Borrows the library.
class NcclGroup {
 public:
  explicit NcclGroup(const NcclLibrary& library);
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  ~NcclGroup();
  void end();

 private:
  const NcclLibrary& library_;
  bool ended_ = false;
};

}  // namespace gxp
