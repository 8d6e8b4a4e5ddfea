#include "lib/collective/engine/mpi/mpi_engine.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/collective/engine/mpi/mpi_job.h"
#include "lib/collective/engine/mpi/mpi_reduction.h"
#include "lib/collective/engine/pairwise.h"
#include "lib/transport/context.h"

namespace gxp {
namespace {

// Counts and offsets of the chunks, as MPI takes them.
struct IntChunks {
  IntChunks(size_t count, int world_size) {
    const Chunks chunks(count, world_size);
    for (int rank = 0; rank < world_size; ++rank) {
      counts.push_back(int(chunks[rank].count));
      offsets.push_back(int(chunks[rank].begin));
    }
  }
  std::vector<int> counts;
  std::vector<int> offsets;
};

void copy(Memory to, ConstMemory from) {
  GXP_ASSERT(to.bytes == from.bytes);
  if (to.bytes > 0 && to.data != from.data) std::memcpy(to.data, from.data, to.bytes);
}

// The first rank of the world on this rank's host.
int first_on_host(MpiJob& job, Deadline deadline) {
  int first = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &first);
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, first, MPI_INFO_NULL, &host),
            "find the ranks of this host in MPI");
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibcast(&first, 1, MPI_INT, 0, host, &request), "find the ranks of this host");
  job.wait(request, deadline);
  MPI_Comm_free(&host);
  return first;
}

class MpiEngine final : public LibraryEngine {
 public:
  // What the engines of all groups have in common.
  struct EngineState {
    std::shared_ptr<MpiJob> job;
    Device& device;
    size_t most;  // elements of a call
    int first_on_host;
    MpiReductions reductions{};
  };
  // Takes the MPI communicator; it is freed by MPI's end.
  MpiEngine(std::shared_ptr<EngineState> state, MPI_Comm comm, Deadline deadline);

  void execute(const Call& call, ConstMemory input, Memory output, Deadline deadline) override;
  void exchange(std::span<const PeerMessage> messages, Deadline deadline) override;
  [[nodiscard]] std::unique_ptr<Engine> split(int color, int key, uint32_t sequence,
                                              Deadline deadline) override;
  void abort(std::string_view reason) noexcept override { state_->job->stop(reason); }

 private:
  template <class Start>
  void run(const Start& start, Deadline deadline);
  template <class Start>
  void run_in_pieces(const Call& call, const Start& start, Deadline deadline);
  void move(const Call& call, ConstMemory input, Memory output, Deadline deadline);
  void move_at_once(const Call& call, ConstMemory input, Memory output, Deadline deadline);
  void reduce(const Call& call, ConstMemory input, Memory output, Deadline deadline);
  void reduce_scatter(const Call& call, ConstMemory input, Memory output, Deadline deadline);
  void reduce_chunks(const Call& call, ConstMemory input, Memory output, Deadline deadline);
  void broadcast(const Call& call, ConstMemory input, Memory output, Deadline deadline);
  [[nodiscard]] Memory scratch(size_t bytes);
  [[nodiscard]] Memory copy_of(ConstMemory input);

  std::shared_ptr<EngineState> state_;  // owners: this engine and those split from it
  MPI_Comm comm_;
  Buffer scratch_;
};

MpiEngine::MpiEngine(std::shared_ptr<EngineState> state, MPI_Comm comm, Deadline deadline)
    : LibraryEngine("mpi", "MPI", state->device), state_(std::move(state)), comm_(comm) {
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &world_size_);
  std::vector<int> first(size_t(world_size_), 0);
  run(
      [&](MPI_Request* request) {
        return MPI_Iallgather(&state_->first_on_host, 1, MPI_INT, first.data(), 1, MPI_INT, comm_,
                              request);
      },
      deadline);
  hosts_ = number_hosts(first);
}

// start(&request) is one nonblocking call.
template <class Start>
void MpiEngine::run(const Start& start, Deadline deadline) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(start(&request), "start a call of MPI");
  state_->job->wait(request, deadline);
}

// start(offset in bytes, count of elements, &request) is a call for part of the logical buffer.
template <class Start>
void MpiEngine::run_in_pieces(const Call& call, const Start& start, Deadline deadline) {
  for (size_t done = 0; done < call.count; done += state_->most) {
    const int count = int(std::min(state_->most, call.count - done));
    const size_t offset = done * size_of(call.dtype);
    run([&](MPI_Request* request) { return start(offset, count, request); }, deadline);
  }
}

Memory MpiEngine::scratch(size_t bytes) {
  return grow(scratch_, bytes, state_->device, MemoryKind::kCommunication);
}

Memory MpiEngine::copy_of(ConstMemory input) {
  const Memory own = scratch(input.bytes);
  copy(own, input);
  return own;
}

void MpiEngine::execute(const Call& call, ConstMemory input, Memory output, Deadline deadline) {
  if (call.collective == Collective::kBarrier) {
    run([&](MPI_Request* request) { return MPI_Ibarrier(comm_, request); }, deadline);
    return;
  }
  if (call.count == 0) return;
  if (!reduces(call.collective)) return move(call, input, output, deadline);
  if (call.op == ReduceOp::kPreMulSum) {
    const Memory own = copy_of(input);
    scale(own, call.dtype, call.factor);
    input = own;
  }
  if (call.collective == Collective::kReduceScatter) {
    reduce_scatter(call, input, output, deadline);
  } else {
    reduce(call, input, output, deadline);
  }
  if (call.op == ReduceOp::kAvg) scale(output, call.dtype, 1.0 / world_size_);
}

// An all-reduce, or a reduce to the root.
void MpiEngine::reduce(const Call& call, ConstMemory input, Memory output, Deadline deadline) {
  const MPI_Op op = state_->reductions.get(call.dtype, call.op);
  const MPI_Datatype type = mpi_type(call.dtype);
  const bool in_place = output.bytes > 0 && input.data == output.data;
  run_in_pieces(
      call,
      [&](size_t offset, int count, MPI_Request* request) {
        const void* from = in_place ? MPI_IN_PLACE : input.data + offset;
        void* to = output.bytes > 0 ? output.data + offset : nullptr;
        return call.collective == Collective::kAllReduce
                   ? MPI_Iallreduce(from, to, count, type, op, comm_, request)
                   : MPI_Ireduce(from, to, count, type, op, call.root, comm_, request);
      },
      deadline);
}

void MpiEngine::reduce_scatter(const Call& call, ConstMemory input, Memory output,
                               Deadline deadline) {
  if (call.count > state_->most) return reduce_chunks(call, input, output, deadline);
  const IntChunks chunks(call.count, world_size_);
  const size_t own = size_t(chunks.offsets[size_t(rank_)]) * size_of(call.dtype);
  // MPI's form in place leaves the result at the beginning of the buffer.
  const bool in_place = output.data == input.data + own;
  const Memory target = in_place ? scratch(output.bytes) : output;
  run(
      [&](MPI_Request* request) {
        return MPI_Ireduce_scatter(input.data, target.data, chunks.counts.data(),
                                   mpi_type(call.dtype),
                                   state_->reductions.get(call.dtype, call.op), comm_, request);
      },
      deadline);
  copy(output, target);
}

// Each chunk to its rank.
void MpiEngine::reduce_chunks(const Call& call, ConstMemory input, Memory output,
                              Deadline deadline) {
  const Chunks chunks(call.count, world_size_);
  const size_t element_bytes = size_of(call.dtype);
  for (int root = 0; root < world_size_; ++root) {
    const Range chunk = chunks[root];
    Call part = call;
    part.collective = Collective::kReduce;
    part.root = root;
    part.count = chunk.count;
    const ConstMemory from = input.slice(chunk.begin * element_bytes, chunk.count * element_bytes);
    reduce(part, from, root == rank_ ? output : Memory{}, deadline);
  }
}

void MpiEngine::move(const Call& call, ConstMemory input, Memory output, Deadline deadline) {
  if (call.collective == Collective::kBroadcast) return broadcast(call, input, output, deadline);
  const bool apart = call.collective != Collective::kAllToAll || input.data != output.data;
  const ConstMemory from = apart ? input : copy_of(input);
  if (call.count <= state_->most) return move_at_once(call, from, output, deadline);
  const PairwiseExchange pairwise = pairwise_exchange(call, rank_, world_size_, from, output);
  copy(pairwise.own_to, pairwise.own_from);
  exchange(pairwise.messages, deadline);
}

void MpiEngine::broadcast(const Call& call, ConstMemory input, Memory output, Deadline deadline) {
  if (rank_ == call.root) copy(output, input);
  run_in_pieces(
      call,
      [&](size_t offset, int count, MPI_Request* request) {
        return MPI_Ibcast(output.data + offset, count, mpi_type(call.dtype), call.root, comm_,
                          request);
      },
      deadline);
}

void MpiEngine::move_at_once(const Call& call, ConstMemory input, Memory output,
                             Deadline deadline) {
  const MPI_Datatype type = mpi_type(call.dtype);
  const IntChunks chunks(call.count, world_size_);
  const int* counts = chunks.counts.data();
  const int* offsets = chunks.offsets.data();
  const int own = counts[rank_];
  const size_t own_offset = size_t(offsets[rank_]) * size_of(call.dtype);
  const auto start = [&](MPI_Request* request) {
    if (call.collective == Collective::kAllGather) {
      const bool in_place = input.data == output.data + own_offset;
      return MPI_Iallgatherv(in_place ? MPI_IN_PLACE : input.data, own, type, output.data, counts,
                             offsets, type, comm_, request);
    }
    if (call.collective == Collective::kGather) {
      const bool in_place = rank_ == call.root && input.data == output.data + own_offset;
      return MPI_Igatherv(in_place ? MPI_IN_PLACE : input.data, own, type, output.data, counts,
                          offsets, type, call.root, comm_, request);
    }
    if (call.collective == Collective::kScatter) {
      const bool in_place = rank_ == call.root && output.data == input.data + own_offset;
      void* to = in_place ? MPI_IN_PLACE : output.data;
      return MPI_Iscatterv(input.data, counts, offsets, type, to, own, type, call.root, comm_,
                           request);
    }
    return MPI_Ialltoall(input.data, own, type, output.data, own, type, comm_, request);
  };
  run(start, deadline);
}

void MpiEngine::exchange(std::span<const PeerMessage> messages, Deadline deadline) {
  std::vector<MPI_Request> requests;
  std::vector<Memory> pieces;
  for (const PeerMessage& message : messages) {
    for (size_t done = 0; done < message.data.bytes; done += state_->most) {
      const size_t bytes = std::min(state_->most, message.data.bytes - done);
      const Memory piece = message.data.slice(done, bytes);
      MPI_Request& request = requests.emplace_back(MPI_REQUEST_NULL);
      check_mpi(message.sends
                    ? MPI_Isend(piece.data, int(bytes), MPI_BYTE, message.peer, 0, comm_, &request)
                    : MPI_Irecv(piece.data, int(bytes), MPI_BYTE, message.peer, 0, comm_, &request),
                "start a message by MPI");
      pieces.push_back(message.sends ? Memory{} : piece);
    }
  }
  std::vector<MPI_Status> statuses(requests.size());
  state_->job->wait(requests, statuses, deadline);
  for (size_t i = 0; i < pieces.size(); ++i) {
    int received = 0;
    if (pieces[i].data == nullptr) continue;
    MPI_Get_count(&statuses[i], MPI_BYTE, &received);
    if (size_t(received) != pieces[i].bytes)
      fail(ErrorKind::kPeer, "receive from rank {}: it sent {} bytes, {} are expected",
           statuses[i].MPI_SOURCE, received, pieces[i].bytes);
  }
}

std::unique_ptr<Engine> MpiEngine::split(int color, int key, uint32_t /*sequence*/,
                                         Deadline deadline) {
  // MPI_Comm_split waits for ever; behind a barrier all ranks are in it.
  run([&](MPI_Request* request) { return MPI_Ibarrier(comm_, request); }, deadline);
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(comm_, color < 0 ? MPI_UNDEFINED : color, key, &part),
            "split a communicator of MPI");
  if (part == MPI_COMM_NULL) return nullptr;
  return std::make_unique<MpiEngine>(state_, part, deadline);
}

}  // namespace

std::shared_ptr<MpiJob> start_mpi_job() { return std::make_shared<MpiJob>(); }

std::unique_ptr<Engine> make_mpi_engine(std::shared_ptr<MpiJob> job, Device& device,
                                        Deadline deadline, size_t most_elements) {
  const int first = first_on_host(*job, deadline);
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "make a communicator of MPI");
  return std::make_unique<MpiEngine>(
      std::shared_ptr<MpiEngine::EngineState>(
          new MpiEngine::EngineState{std::move(job), device, most_elements, first}),
      comm, deadline);
}

}  // namespace gxp
