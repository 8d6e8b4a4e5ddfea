// A library with NCCL's functions whose GPU memory is the host's. As the real one does with
// nonblocking communicators, its calls return at once, and ncclCommGetAsyncError() brings them
// forward: where a test gives streams (fakeNcclSetControls()), onto the call's stream, else to
// their end. Receives and reductions that no other rank joins last for ever, or until an abort. It
// checks nothing of a collective call. Ranks are threads of one process, or processes with one
// folder FAKE_NCCL_BOARD.
#include "tests/collective/fake_nccl.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/reduce_op.h"
#include "lib/collective/engine/nccl/nccl_library.h"
#include "tests/collective/fake_nccl_board.h"

#ifndef FAKE_NCCL_VERSION
#define FAKE_NCCL_VERSION 22809
#endif

using gxp::NcclConfig;
using gxp::NcclOp;
using gxp::NcclResult;
using gxp::NcclStream;
using gxp::NcclType;
using gxp::NcclUniqueId;

namespace {

using gxp::fake_nccl::Bytes;
using gxp::fake_nccl::bytes_at;
using gxp::fake_nccl::look_up;
using gxp::fake_nccl::post;
constexpr int kFirstCreatedOp = 16;

gxp::fake_nccl::Controls controls;

// A call that was started: what it does first, and what it tries until it succeeds.
struct Work {
  std::function<void()> begin;
  std::function<bool()> finish;
  NcclStream stream = nullptr;  // null: of the host
};

gxp::DType dtype_of(NcclType type) {
  for (const auto dtype : {gxp::DType::kF64, gxp::DType::kF32, gxp::DType::kF16, gxp::DType::kBF16,
                           gxp::DType::kI64, gxp::DType::kI32, gxp::DType::kI8, gxp::DType::kU8})
    if (gxp::nccl_type(dtype) == type) return dtype;
  return gxp::DType::kU8;
}

gxp::ReduceOp reduce_op_of(NcclOp op) {
  if (op == NcclOp::kProd) return gxp::ReduceOp::kProd;
  if (op == NcclOp::kMax) return gxp::ReduceOp::kMax;
  return op == NcclOp::kMin ? gxp::ReduceOp::kMin : gxp::ReduceOp::kSum;
}

}  // namespace

namespace gxp {

struct NcclComm {
  std::string id;
  int rank = 0;
  int size = 1;
  int calls = 0;
  std::map<std::string, int> message_numbers{};
  std::vector<Work> pending{};
  double factor = 1;  // of the one created operation
  std::atomic<bool> ended = false;
  std::atomic<int> works = 0;  // that have begun on streams
};

}  // namespace gxp

namespace {

using gxp::NcclComm;

thread_local int group_depth = 0;
thread_local std::vector<std::pair<NcclComm*, Work>> grouped;

std::mutex comms_mutex;
// None is freed, so that the use of one that has ended is seen.
std::vector<std::unique_ptr<NcclComm>> all_comms;  // guarded by comms_mutex

NcclComm* make_comm(const std::string& id, int rank, int size) {
  const std::lock_guard lock(comms_mutex);
  auto& made = all_comms.emplace_back(std::make_unique<NcclComm>());
  made->id = id;
  made->rank = rank;
  made->size = size;
  return made.get();
}

// A kernel, which an abort ends.
void put_on_stream(NcclComm& comm, Work work) {
  controls.enqueue(work.stream, [&comm, work, begun = false]() mutable {
    if (comm.ended) return true;
    if (!begun) {
      if (controls.on_begin) controls.on_begin(comm.rank, comm.works);
      ++comm.works;
      work.begin();
    }
    begun = true;
    return work.finish();
  });
}

void advance(NcclComm& comm) {
  for (Work& work : comm.pending)
    if (controls.enqueue && work.stream != nullptr) put_on_stream(comm, work);
  std::erase_if(comm.pending, [](const Work& work) {
    return (controls.enqueue && work.stream != nullptr) || work.finish();
  });
}

void begin(NcclComm* comm, Work work) {
  if (!controls.enqueue || work.stream == nullptr) work.begin();
  comm->pending.push_back(std::move(work));
}

NcclResult start(NcclComm* comm, NcclStream stream, Work work) {
  if (comm->ended) return NcclResult::kInvalidArgument;
  work.stream = stream;
  if (group_depth > 0) {
    grouped.emplace_back(comm, std::move(work));
    return NcclResult::kSuccess;
  }
  begin(comm, std::move(work));
  return NcclResult::kInProgress;
}

// Every rank gives something; use(all, by rank) when all have come.
NcclResult rendezvous(NcclComm* comm, NcclStream stream, const std::function<Bytes()>& give,
                      const std::function<void(const std::vector<const Bytes*>&)>& use) {
  const std::string name = comm->id + "/" + std::to_string(comm->calls++) + "/";
  const auto begin = [=] { post(name + std::to_string(comm->rank), give()); };
  const auto finish = [=] {
    std::vector<const Bytes*> all;
    for (int rank = 0; rank < comm->size; ++rank) {
      all.push_back(look_up(name + std::to_string(rank)));
      if (all.back() == nullptr) return false;
    }
    use(all);
    return true;
  };
  return start(comm, stream, {begin, finish});
}

struct Reduction {
  gxp::DType dtype;
  NcclOp op;
  double factor;
};

// What this rank gives to a reduction.
Bytes contribution(const void* from, size_t bytes, const Reduction& how) {
  Bytes own = bytes_at(from, bytes);
  if (int(how.op) >= kFirstCreatedOp) gxp::scale(gxp::memory_of(own), how.dtype, how.factor);
  return own;
}

void reduce_into(void* to, size_t offset, size_t bytes, const std::vector<const Bytes*>& all,
                 const Reduction& how) {
  const auto part = [&](const Bytes* from) { return gxp::memory_of(*from).slice(offset, bytes); };
  Bytes sum(part(all[0]).data, part(all[0]).data + bytes);
  for (size_t rank = 1; rank < all.size(); ++rank)
    gxp::fold(gxp::memory_of(sum), part(all[rank]), how.dtype, reduce_op_of(how.op));
  if (how.op == NcclOp::kAvg) gxp::scale(gxp::memory_of(sum), how.dtype, 1.0 / double(all.size()));
  if (bytes > 0) std::memcpy(to, sum.data(), bytes);
}

std::string message_name(NcclComm* comm, int from, int to) {
  const std::string pair = comm->id + "/" + std::to_string(from) + ">" + std::to_string(to) + "/";
  return pair + std::to_string(comm->message_numbers[pair]++);
}

}  // namespace

extern "C" {

NcclResult ncclGetVersion(int* code) {
  *code = FAKE_NCCL_VERSION;
  return NcclResult::kSuccess;
}
const char* ncclGetErrorString(NcclResult) { return "fake failure"; }
const char* ncclGetLastError(NcclComm*) { return "no cable"; }

NcclResult ncclGetUniqueId(NcclUniqueId* id) {
  static int made = 0;
  // Several of these libraries may have one board.
  const std::string name = "job" + std::to_string(getpid()) + "-" +
                           std::to_string(FAKE_NCCL_VERSION) + "-" + std::to_string(made++);
  std::memcpy(id->bytes, name.c_str(), name.size() + 1);
  return NcclResult::kSuccess;
}

NcclResult ncclCommInitRankConfig(NcclComm** comm, int ranks, NcclUniqueId id, int rank,
                                  NcclConfig* config) {
  if (config->blocking != 0 || config->magic != 0xcafebeef) return NcclResult::kInvalidArgument;
  if (controls.on_config) controls.on_config(*config);
  *comm = make_comm(id.bytes, rank, ranks);
  return rendezvous(
      *comm, nullptr, [] { return Bytes(); }, [](const auto&) {});
}

#if FAKE_NCCL_VERSION >= 21801
NcclResult ncclCommSplit(NcclComm* comm, int color, int key, NcclComm** part, NcclConfig*) {
  struct Request {
    int color, key;
  } const mine{color, key};
  const std::string id = comm->id + "." + std::to_string(comm->calls) + "." + std::to_string(color);
  const auto take = [=](const std::vector<const Bytes*>& all) {
    std::map<std::pair<int, int>, int> members;  // (key, rank)
    for (int rank = 0; rank < comm->size; ++rank) {
      Request request{};
      std::memcpy(&request, all[size_t(rank)]->data(), sizeof request);
      if (request.color == color) members[{request.key, rank}] = rank;
    }
    const auto me = members.find({key, comm->rank});
    if (color >= 0)
      *part = make_comm(id, int(std::distance(members.begin(), me)), int(members.size()));
  };
  return rendezvous(
      comm, nullptr, [=] { return bytes_at(&mine, sizeof mine); }, take);
}

#endif

#if FAKE_NCCL_VERSION >= 21901
NcclResult ncclMemAlloc(void** data, size_t bytes) {
  *data = controls.allocate ? controls.allocate(bytes) : std::malloc(bytes);
  return *data == nullptr ? NcclResult::kCudaError : NcclResult::kSuccess;
}
NcclResult ncclMemFree(void* data) {
  controls.free ? controls.free(data) : std::free(data);
  return NcclResult::kSuccess;
}
NcclResult ncclCommRegister(const NcclComm*, void* data, size_t, void** handle) {
  *handle = data;
  if (controls.on_register) controls.on_register("buffer", 1);
  return NcclResult::kSuccess;
}
NcclResult ncclCommDeregister(const NcclComm*, void*) {
  if (controls.on_register) controls.on_register("buffer", -1);
  return NcclResult::kSuccess;
}
#endif
#if FAKE_NCCL_VERSION >= 22703
NcclResult ncclCommWindowRegister(NcclComm* comm, void* data, size_t, gxp::NcclWindow** window,
                                  int) {
  *window = static_cast<gxp::NcclWindow*>(data);
  if (controls.on_register) controls.on_register("window", 1);
  return rendezvous(
      comm, nullptr, [] { return Bytes(); }, [](const auto&) {});
}
NcclResult ncclCommWindowDeregister(NcclComm*, gxp::NcclWindow*) {
  if (controls.on_register) controls.on_register("window", -1);
  return NcclResult::kSuccess;
}
#endif

NcclResult ncclCommFinalize(NcclComm*) { return NcclResult::kInProgress; }
NcclResult ncclCommDestroy(NcclComm* comm) {
  return comm->ended.exchange(true) ? NcclResult::kInvalidArgument : NcclResult::kSuccess;
}
NcclResult ncclCommAbort(NcclComm* comm) { return ncclCommDestroy(comm); }
NcclResult ncclCommGetAsyncError(NcclComm* comm, NcclResult* state) {
  if (comm->ended) return NcclResult::kInvalidArgument;
  advance(*comm);
  if (controls.fail_at >= 0 && comm->works > controls.fail_at) {
    *state = NcclResult::kRemoteError;
    return NcclResult::kSuccess;
  }
  *state = comm->pending.empty() ? NcclResult::kSuccess : NcclResult::kInProgress;
  return NcclResult::kSuccess;
}
NcclResult ncclCommCount(const NcclComm* comm, int* count) {
  *count = comm->size;
  return NcclResult::kSuccess;
}
NcclResult ncclCommUserRank(const NcclComm* comm, int* rank) {
  *rank = comm->rank;
  return NcclResult::kSuccess;
}

NcclResult ncclRedOpCreatePreMulSum(NcclOp* op, void* factor, NcclType type, int, NcclComm* comm) {
  switch (type) {
    case NcclType::kFloat64:
      comm->factor = *static_cast<double*>(factor);
      break;
    case NcclType::kFloat32:
      comm->factor = double(*static_cast<float*>(factor));
      break;
    case NcclType::kFloat16:
      comm->factor = double(float(*static_cast<gxp::Float16*>(factor)));
      break;
    case NcclType::kBfloat16:
      comm->factor = double(float(*static_cast<gxp::BFloat16*>(factor)));
      break;
    default:
      comm->factor = double(*static_cast<int8_t*>(factor));
  }
  *op = NcclOp(kFirstCreatedOp);
  return NcclResult::kSuccess;
}
NcclResult ncclRedOpDestroy(NcclOp, NcclComm*) { return NcclResult::kSuccess; }

NcclResult ncclGroupStart() {
  ++group_depth;
  return NcclResult::kSuccess;
}
NcclResult ncclGroupEnd() {
  if (--group_depth > 0) return NcclResult::kSuccess;
  for (auto& [comm, work] : grouped) begin(comm, std::move(work));
  grouped.clear();
  return NcclResult::kInProgress;
}

NcclResult ncclAllReduce(const void* from, void* to, size_t count, NcclType type, NcclOp op,
                         NcclComm* comm, NcclStream stream) {
  const Reduction how{dtype_of(type), op, comm->factor};
  const size_t bytes = count * size_of(how.dtype);
  return rendezvous(
      comm, stream, [=] { return contribution(from, bytes, how); },
      [=](const auto& all) { reduce_into(to, 0, bytes, all, how); });
}
NcclResult ncclReduce(const void* from, void* to, size_t count, NcclType type, NcclOp op, int root,
                      NcclComm* comm, NcclStream stream) {
  const Reduction how{dtype_of(type), op, comm->factor};
  const size_t bytes = count * size_of(how.dtype);
  const auto give = [=] { return contribution(from, bytes, how); };
  return rendezvous(comm, stream, give, [=](const auto& all) {
    if (comm->rank == root) reduce_into(to, 0, bytes, all, how);
  });
}
NcclResult ncclReduceScatter(const void* from, void* to, size_t count, NcclType type, NcclOp op,
                             NcclComm* comm, NcclStream stream) {
  const Reduction how{dtype_of(type), op, comm->factor};
  const size_t bytes = count * size_of(how.dtype);
  const auto give = [=] { return contribution(from, bytes * size_t(comm->size), how); };
  return rendezvous(comm, stream, give, [=](const auto& all) {
    reduce_into(to, bytes * size_t(comm->rank), bytes, all, how);
  });
}
NcclResult ncclAllGather(const void* from, void* to, size_t count, NcclType type, NcclComm* comm,
                         NcclStream stream) {
  const size_t bytes = count * size_of(dtype_of(type));
  return rendezvous(
      comm, stream, [=] { return bytes_at(from, bytes); },
      [=](const auto& all) {
        auto* next = static_cast<std::byte*>(to);
        for (const Bytes* part : all) next = std::copy(part->begin(), part->end(), next);
      });
}
NcclResult ncclBroadcast(const void* from, void* to, size_t count, NcclType type, int root,
                         NcclComm* comm, NcclStream stream) {
  const size_t bytes = count * size_of(dtype_of(type));
  const auto give = [=] { return bytes_at(from, comm->rank == root ? bytes : 0); };
  return rendezvous(comm, stream, give,
                    [=](const auto& all) { std::memcpy(to, all[size_t(root)]->data(), bytes); });
}
NcclResult ncclSend(const void* from, size_t count, NcclType type, int peer, NcclComm* comm,
                    NcclStream stream) {
  const std::string name = message_name(comm, comm->rank, peer);
  const size_t bytes = count * size_of(dtype_of(type));
  return start(comm, stream, {[=] { post(name, bytes_at(from, bytes)); }, [] { return true; }});
}
NcclResult ncclRecv(void* to, size_t, NcclType, int peer, NcclComm* comm, NcclStream stream) {
  const std::string name = message_name(comm, peer, comm->rank);
  return start(comm, stream,
               {[] {},
                [=] {
                  const Bytes* arrived = look_up(name);
                  if (arrived != nullptr) std::memcpy(to, arrived->data(), arrived->size());
                  return arrived != nullptr;
                }});
}

void fakeNcclSetControls(const gxp::fake_nccl::Controls* now) { controls = *now; }

}  // extern "C"
