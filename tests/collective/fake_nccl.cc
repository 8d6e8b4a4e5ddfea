// A library with NCCL's functions whose ranks are threads of one process and whose GPU memory is
// the host's. As the real one does with nonblocking communicators, its calls return at once and
// ncclCommGetAsyncError() brings them forward. Receives and reductions that no other rank joins
// stay in progress for ever. It checks nothing of a collective call.
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/reduce_op.h"
#include "lib/collective/engine/nccl/nccl_library.h"

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

using Bytes = std::vector<std::byte>;
constexpr int kFirstCreatedOp = 16;

// What ranks tell each other, by a name that both know. Never taken down.
std::mutex board_mutex;
std::map<std::string, Bytes> board;  // guarded by board_mutex

void post(const std::string& name, Bytes data) {
  const std::lock_guard lock(board_mutex);
  board[name] = std::move(data);
}

Bytes bytes_at(const void* data, size_t bytes) {
  const auto* first = static_cast<const std::byte*>(data);
  return {first, first + bytes};
}

const Bytes* look_up(const std::string& name) {
  const std::lock_guard lock(board_mutex);
  const auto found = board.find(name);
  return found == board.end() ? nullptr : &found->second;
}

// A call that was started: what it does first, and what it tries until it succeeds.
struct Work {
  std::function<void()> begin;
  std::function<bool()> finish;
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
};

}  // namespace gxp

namespace {

using gxp::NcclComm;

thread_local int group_depth = 0;
thread_local std::vector<std::pair<NcclComm*, Work>> grouped;

void advance(NcclComm& comm) {
  std::erase_if(comm.pending, [](const Work& work) { return work.finish(); });
}

NcclResult start(NcclComm* comm, Work work) {
  if (group_depth > 0) {
    grouped.emplace_back(comm, std::move(work));
    return NcclResult::kSuccess;
  }
  work.begin();
  comm->pending.push_back(std::move(work));
  return NcclResult::kInProgress;
}

// Every rank gives something; use(all, by rank) when all have come.
NcclResult meet(NcclComm* comm, const std::function<Bytes()>& give,
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
  return start(comm, {begin, finish});
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
  const std::string name = "job" + std::to_string(made++);
  std::memcpy(id->bytes, name.c_str(), name.size() + 1);
  return NcclResult::kSuccess;
}

NcclResult ncclCommInitRankConfig(NcclComm** comm, int ranks, NcclUniqueId id, int rank,
                                  NcclConfig* config) {
  if (config->blocking != 0 || config->magic != 0xcafebeef) return NcclResult::kInvalidArgument;
  *comm = new NcclComm{id.bytes, rank, ranks};
  return meet(
      *comm, [] { return Bytes(); }, [](const auto&) {});
}

NcclResult ncclCommSplit(NcclComm* comm, int color, int key, NcclComm** part, NcclConfig*) {
  struct Wish {
    int color, key;
  } const mine{color, key};
  const std::string id = comm->id + "." + std::to_string(comm->calls) + "." + std::to_string(color);
  const auto take = [=](const std::vector<const Bytes*>& all) {
    std::map<std::pair<int, int>, int> members;  // (key, rank)
    for (int rank = 0; rank < comm->size; ++rank) {
      Wish wish{};
      std::memcpy(&wish, all[size_t(rank)]->data(), sizeof wish);
      if (wish.color == color) members[{wish.key, rank}] = rank;
    }
    const auto me = members.find({key, comm->rank});
    if (color >= 0)
      *part = new NcclComm{id, int(std::distance(members.begin(), me)), int(members.size())};
  };
  return meet(
      comm, [=] { return bytes_at(&mine, sizeof mine); }, take);
}

NcclResult ncclCommFinalize(NcclComm*) { return NcclResult::kInProgress; }
NcclResult ncclCommDestroy(NcclComm* comm) {
  delete comm;
  return NcclResult::kSuccess;
}
NcclResult ncclCommAbort(NcclComm* comm) { return ncclCommDestroy(comm); }
NcclResult ncclCommGetAsyncError(NcclComm* comm, NcclResult* state) {
  advance(*comm);
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
  for (auto& [comm, work] : grouped) work.begin();
  for (auto& [comm, work] : grouped) comm->pending.push_back(std::move(work));
  grouped.clear();
  return NcclResult::kInProgress;
}

NcclResult ncclAllReduce(const void* from, void* to, size_t count, NcclType type, NcclOp op,
                         NcclComm* comm, NcclStream) {
  const Reduction how{dtype_of(type), op, comm->factor};
  const size_t bytes = count * size_of(how.dtype);
  return meet(
      comm, [=] { return contribution(from, bytes, how); },
      [=](const auto& all) { reduce_into(to, 0, bytes, all, how); });
}
NcclResult ncclReduce(const void* from, void* to, size_t count, NcclType type, NcclOp op, int root,
                      NcclComm* comm, NcclStream) {
  const Reduction how{dtype_of(type), op, comm->factor};
  const size_t bytes = count * size_of(how.dtype);
  const auto give = [=] { return contribution(from, bytes, how); };
  return meet(comm, give, [=](const auto& all) {
    if (comm->rank == root) reduce_into(to, 0, bytes, all, how);
  });
}
NcclResult ncclReduceScatter(const void* from, void* to, size_t count, NcclType type, NcclOp op,
                             NcclComm* comm, NcclStream) {
  const Reduction how{dtype_of(type), op, comm->factor};
  const size_t bytes = count * size_of(how.dtype);
  const auto give = [=] { return contribution(from, bytes * size_t(comm->size), how); };
  return meet(comm, give, [=](const auto& all) {
    reduce_into(to, bytes * size_t(comm->rank), bytes, all, how);
  });
}
NcclResult ncclAllGather(const void* from, void* to, size_t count, NcclType type, NcclComm* comm,
                         NcclStream) {
  const size_t bytes = count * size_of(dtype_of(type));
  return meet(
      comm, [=] { return bytes_at(from, bytes); },
      [=](const auto& all) {
        auto* next = static_cast<std::byte*>(to);
        for (const Bytes* part : all) next = std::copy(part->begin(), part->end(), next);
      });
}
NcclResult ncclBroadcast(const void* from, void* to, size_t count, NcclType type, int root,
                         NcclComm* comm, NcclStream) {
  const size_t bytes = count * size_of(dtype_of(type));
  const auto give = [=] { return bytes_at(from, comm->rank == root ? bytes : 0); };
  return meet(comm, give,
              [=](const auto& all) { std::memcpy(to, all[size_t(root)]->data(), bytes); });
}
NcclResult ncclSend(const void* from, size_t count, NcclType type, int peer, NcclComm* comm,
                    NcclStream) {
  const std::string name = message_name(comm, comm->rank, peer);
  const size_t bytes = count * size_of(dtype_of(type));
  return start(comm, {[=] { post(name, bytes_at(from, bytes)); }, [] { return true; }});
}
NcclResult ncclRecv(void* to, size_t, NcclType, int peer, NcclComm* comm, NcclStream) {
  const std::string name = message_name(comm, peer, comm->rank);
  return start(comm, {[] {},
                      [=] {
                        const Bytes* arrived = look_up(name);
                        if (arrived != nullptr) std::memcpy(to, arrived->data(), arrived->size());
                        return arrived != nullptr;
                      }});
}

}  // extern "C"
