#include "lib/collective/engine/nccl/nccl_library.h"

#include <array>

#include "lib/base/shared_library.h"
#include "lib/collective/engine/engine.h"
#include "lib/collective/engine/nccl/nccl_versions.h"

namespace gxp {
namespace {

void find_all(void* library, const std::string& file, const NcclVersion& version,
              NcclFunctions& f) {
  const auto take = [&](const char* name, auto& function) {
    find_function(library, "NCCL", file, name, function);
  };
  take("ncclGetErrorString", f.get_error_string);
  take("ncclGetLastError", f.get_last_error);
  take("ncclGetUniqueId", f.get_unique_id);
  take("ncclCommInitRankConfig", f.init_rank);
  take("ncclCommFinalize", f.finalize);
  take("ncclCommDestroy", f.destroy);
  take("ncclCommAbort", f.abort);
  take("ncclCommGetAsyncError", f.get_async_error);
  take("ncclCommCount", f.count);
  take("ncclCommUserRank", f.user_rank);
  take("ncclRedOpCreatePreMulSum", f.create_pre_mul_sum);
  take("ncclRedOpDestroy", f.destroy_op);
  take("ncclGroupStart", f.group_start);
  take("ncclGroupEnd", f.group_end);
  take("ncclAllReduce", f.all_reduce);
  take("ncclReduce", f.reduce);
  take("ncclReduceScatter", f.reduce_scatter);
  take("ncclAllGather", f.all_gather);
  take("ncclBroadcast", f.broadcast);
  take("ncclSend", f.send);
  take("ncclRecv", f.recv);
  if (has(version, NcclFeature::kSplit)) take("ncclCommSplit", f.split);
  if (has(version, NcclFeature::kRegistration)) {
    take("ncclMemAlloc", f.mem_alloc);
    take("ncclMemFree", f.mem_free);
    take("ncclCommRegister", f.register_memory);
    take("ncclCommDeregister", f.deregister_memory);
  }
  if (has(version, NcclFeature::kWindows)) {
    take("ncclCommWindowRegister", f.register_window);
    take("ncclCommWindowDeregister", f.deregister_window);
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
  void* const library = open_library("NCCL", file, "install it or set LD_LIBRARY_PATH");
  int code = 0;
  find_function(library, "NCCL", file, "ncclGetVersion", functions_.get_version);
  if (functions_.get_version(&code) != NcclResult::kSuccess)
    fail(ErrorKind::kUnavailable, "load NCCL from {}: it does not tell its version", file);
  version_ = parse_nccl_version(code);
  if (version_ < kOldestNccl)
    fail(ErrorKind::kUnavailable, "load NCCL from {}: it is version {}, gxp needs {}", file,
         to_string(version_), to_string(kOldestNccl));
  find_all(library, file, version_, functions_);
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
