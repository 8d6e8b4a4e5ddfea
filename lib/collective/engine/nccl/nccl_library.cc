#include "lib/collective/engine/nccl/nccl_library.h"

#include <array>

#include "lib/base/shared_library.h"
#include "lib/collective/engine/engine.h"
#include "lib/collective/engine/nccl/nccl_versions.h"

namespace gxp {
namespace {

void find_all(const SharedLibrary& library, const NcclVersion& version, NcclFunctions& f) {
  library.find("ncclGetErrorString", f.get_error_string);
  library.find("ncclGetLastError", f.get_last_error);
  library.find("ncclGetUniqueId", f.get_unique_id);
  library.find("ncclCommInitRankConfig", f.init_rank);
  library.find("ncclCommFinalize", f.finalize);
  library.find("ncclCommDestroy", f.destroy);
  library.find("ncclCommAbort", f.abort);
  library.find("ncclCommGetAsyncError", f.get_async_error);
  library.find("ncclCommCount", f.count);
  library.find("ncclCommUserRank", f.user_rank);
  library.find("ncclRedOpCreatePreMulSum", f.create_pre_mul_sum);
  library.find("ncclRedOpDestroy", f.destroy_op);
  library.find("ncclGroupStart", f.group_start);
  library.find("ncclGroupEnd", f.group_end);
  library.find("ncclAllReduce", f.all_reduce);
  library.find("ncclReduce", f.reduce);
  library.find("ncclReduceScatter", f.reduce_scatter);
  library.find("ncclAllGather", f.all_gather);
  library.find("ncclBroadcast", f.broadcast);
  library.find("ncclSend", f.send);
  library.find("ncclRecv", f.recv);
  if (has(version, NcclFeature::kSplit)) library.find("ncclCommSplit", f.split);
  if (has(version, NcclFeature::kRegistration)) {
    library.find("ncclMemAlloc", f.mem_alloc);
    library.find("ncclMemFree", f.mem_free);
    library.find("ncclCommRegister", f.register_memory);
    library.find("ncclCommDeregister", f.deregister_memory);
  }
  if (has(version, NcclFeature::kWindows)) {
    library.find("ncclCommWindowRegister", f.register_window);
    library.find("ncclCommWindowDeregister", f.deregister_window);
  }
}

ErrorKind kind_of(NcclResult result) {
  switch (result) {
    case NcclResult::kSystemError:
    case NcclResult::kRemoteError:
      return ErrorKind::kPeer;
    case NcclResult::kInvalidArgument:
    case NcclResult::kInvalidUsage:
      return ErrorKind::kInternal;
    default:
      return ErrorKind::kDevice;
  }
}

}  // namespace

NcclVersion parse_nccl_version(int code) {
  const int scale = code < 10000 ? 1000 : 10000;
  return {code / scale, code % scale / 100, code % 100};
}

std::string to_string(const NcclVersion& version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

NcclType nccl_type(DType dtype) {
  using enum NcclType;
  constexpr std::array kTypes = {kFloat64, kFloat32, kFloat16, kBfloat16,
                                 kInt64,   kInt32,   kInt8,    kUint8};
  return kTypes[size_t(dtype)];
}

NcclLibrary::NcclLibrary(const std::string& file) {
  const SharedLibrary library("NCCL", file, "install it or set LD_LIBRARY_PATH");
  int code = 0;
  library.find("ncclGetVersion", functions_.get_version);
  if (functions_.get_version(&code) != NcclResult::kSuccess)
    fail(ErrorKind::kUnavailable, "load NCCL from {}: it does not report its version", file);
  version_ = parse_nccl_version(code);
  if (version_ < kOldestNccl)
    fail(ErrorKind::kUnavailable, "load NCCL from {}: it is version {}, gxp needs {}", file,
         to_string(version_), to_string(kOldestNccl));
  find_all(library, version_, functions_);
}

void NcclLibrary::check(NcclResult result, std::string_view act) const {
  if (result == NcclResult::kSuccess || result == NcclResult::kInProgress) return;
  const char* const more = functions_.get_last_error(nullptr);
  throw LibraryFailure(
      kind_of(result),
      fmt::format("{}: {}{}{}", act, functions_.get_error_string(result),
                  more != nullptr && *more != '\0' ? ": " : "", more == nullptr ? "" : more));
}

NcclGroup::NcclGroup(const NcclLibrary& library) : library_(library) {
  library_.check(library_.functions().group_start(), "begin a group of NCCL's calls");
}

NcclGroup::~NcclGroup() {
  if (!ended_) library_.functions().group_end();  // on the way out of a failure
}

void NcclGroup::end() {
  ended_ = true;
  library_.check(library_.functions().group_end(), "start a group of NCCL's calls");
}

}  // namespace gxp
