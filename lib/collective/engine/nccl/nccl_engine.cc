#include "lib/collective/engine/nccl/nccl_engine.h"

#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/collective/engine/library_wait.h"
#include "lib/collective/engine/nccl/nccl_reduction.h"
#include "lib/collective/engine/pairwise.h"

namespace gxp {
namespace {

class NcclEngine final : public LibraryEngine {
 public:
  // What the engines of all groups have in common.
  struct EngineState {
    NcclLibrary library;
    std::unique_ptr<NcclQueue> queue;
    Device& device;                      // of allocate()
    std::shared_ptr<AbortFlag> aborted;  // owners: this and the store's alarm
    int host = 0;                        // of this rank
  };
  // Takes the communicator, which may still be in progress.
  NcclEngine(std::shared_ptr<EngineState> state, NcclComm* comm, Deadline deadline);
  NcclEngine(const NcclEngine&) = delete;
  NcclEngine& operator=(const NcclEngine&) = delete;
  ~NcclEngine() override;

  [[nodiscard]] bool supports_memory(MemorySpace /*space*/) const override { return true; }

  void execute(const Call& call, ConstMemory input, Memory output, Deadline deadline) override;
  void exchange(std::span<const PeerMessage> messages, Deadline deadline) override;
  [[nodiscard]] std::unique_ptr<Engine> split(int color, int key, uint32_t sequence,
                                              Deadline deadline) override;
  void abort(std::string_view reason) noexcept override { state_->aborted->set(reason); }

 private:
  [[nodiscard]] const NcclFunctions& nccl() const { return state_->library.functions(); }
  void check(NcclResult result) const { state_->library.check(result, "call NCCL"); }
  void find_place(Deadline deadline);
  void wait(Deadline deadline);
  [[nodiscard]] bool settled();
  void start(const Call& call, ConstMemory input, Memory output);
  void start_reduction(const Call& call, ConstMemory input, Memory output, NcclOp op);
  void start_reduce_scatter(const Call& call, ConstMemory input, Memory output, NcclOp op);
  void start_all_gather(const Call& call, ConstMemory input, Memory output);
  void start_pairwise(const Call& call, ConstMemory input, Memory output);
  void start_messages(std::span<const PeerMessage> messages);
  [[nodiscard]] Memory staging(Buffer& buffer, size_t bytes);
  [[nodiscard]] ConstMemory on_gpu(ConstMemory input, bool always);

  std::shared_ptr<EngineState> state_;  // owners: this engine and those split from it
  NcclComm* comm_;
  bool failed_ = true;  // until it works: only an abort ends the communicator
  Buffer staged_input_;
  Buffer staged_output_;
};

NcclEngine::NcclEngine(std::shared_ptr<EngineState> state, NcclComm* comm, Deadline deadline)
    : LibraryEngine("nccl", "NCCL", state->device), state_(std::move(state)), comm_(comm) {
  try {
    find_place(deadline);
  } catch (...) {  // there will be no destructor
    nccl().abort(comm_);
    throw;
  }
}

void NcclEngine::find_place(Deadline deadline) {
  wait(deadline);
  check(nccl().user_rank(comm_, &rank_));
  check(nccl().count(comm_, &world_size_));
  std::vector<int> numbers(size_t(world_size_), 0);
  const Call call{
      .collective = Collective::kAllGather, .dtype = DType::kI32, .count = numbers.size()};
  const ConstMemory mine{reinterpret_cast<const std::byte*>(&state_->host), sizeof(int)};
  execute(call, mine, memory_of(numbers), deadline);
  hosts_ = number_hosts(numbers);
}

NcclEngine::~NcclEngine() {
  constexpr auto kPatience = std::chrono::seconds(5);
  try {
    if (!failed_ && !state_->aborted->is_set()) {
      check(nccl().finalize(comm_));
      wait(Deadline::after(kPatience));
      nccl().destroy(comm_);
      return;
    }
  } catch (const Error& error) {
    log_warn("engine nccl: {}", error.what());
  }
  nccl().abort(comm_);
}

// Whether NCCL has queued what was started, and the GPU has done it.
bool NcclEngine::settled() {
  NcclResult state = NcclResult::kSuccess;
  check(nccl().get_async_error(comm_, &state));
  check(state);
  return state == NcclResult::kSuccess && state_->queue->done();
}

void NcclEngine::wait(Deadline deadline) {
  failed_ = true;
  wait_for_ranks(
      "NCCL", *state_->aborted, [this] { return settled(); }, deadline);
  failed_ = false;
}

Memory NcclEngine::staging(Buffer& buffer, size_t bytes) {
  return grow(buffer, bytes, state_->queue->device(), MemoryKind::kCommunication);
}

// Where it is, or, if it is host memory, a copy.
ConstMemory NcclEngine::on_gpu(ConstMemory input, bool always) {
  if (!always && input.space != MemorySpace::kHost) return input;
  const Memory copy = staging(staged_input_, input.bytes);
  if (copy.bytes > 0) state_->queue->copy(copy, input);
  return copy;
}

void NcclEngine::execute(const Call& call, ConstMemory input, Memory output, Deadline deadline) {
  check_nccl_reduction(call);
  const bool empty = call.count == 0 && call.collective != Collective::kBarrier;
  if (empty) return;
  const bool overlap =
      call.collective == Collective::kAllToAll && input.data == output.data;  // NCCL forbids it
  const bool host = output.space == MemorySpace::kHost;
  const ConstMemory from = on_gpu(input, overlap);
  const Memory to = host ? staging(staged_output_, output.bytes) : output;
  failed_ = true;  // what throws from here on leaves NCCL in the midst of a call
  start(call, from, to);
  wait(deadline);
  if (!host || output.bytes == 0) return;
  state_->queue->copy(output, to);
  wait(deadline);
}

void NcclEngine::start(const Call& call, ConstMemory input, Memory output) {
  const NcclStream stream = state_->queue->stream();
  switch (call.collective) {
    case Collective::kAllReduce:
    case Collective::kReduce:
    case Collective::kReduceScatter: {
      const NcclReduction reduction(state_->library, comm_, call);
      if (call.collective == Collective::kReduceScatter)
        return start_reduce_scatter(call, input, output, reduction.get());
      return start_reduction(call, input, output, reduction.get());
    }
    case Collective::kAllGather:
      return start_all_gather(call, input, output);
    case Collective::kBroadcast:
      return check(nccl().broadcast(rank_ == call.root ? input.data : output.data, output.data,
                                    call.count, nccl_type(call.dtype), call.root, comm_, stream));
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kAllToAll:
      return start_pairwise(call, input, output);
    case Collective::kBarrier: {
      const Memory word = staging(staged_output_, 1);
      return check(nccl().all_reduce(word.data, word.data, 1, NcclType::kUint8, NcclOp::kMax, comm_,
                                     stream));
    }
  }
}

// An all-reduce, or a reduce to the root.
void NcclEngine::start_reduction(const Call& call, ConstMemory input, Memory output, NcclOp op) {
  const NcclType type = nccl_type(call.dtype);
  const NcclStream stream = state_->queue->stream();
  check(
      call.collective == Collective::kAllReduce
          ? nccl().all_reduce(input.data, output.data, call.count, type, op, comm_, stream)
          : nccl().reduce(input.data, output.data, call.count, type, op, call.root, comm_, stream));
}

void NcclEngine::start_reduce_scatter(const Call& call, ConstMemory input, Memory output,
                                      NcclOp op) {
  const NcclType type = nccl_type(call.dtype);
  const NcclStream stream = state_->queue->stream();
  const Chunks chunks(call.count, world_size_);
  if (call.count % size_t(world_size_) == 0)
    return check(nccl().reduce_scatter(input.data, output.data, chunks[rank_].count, type, op,
                                       comm_, stream));
  NcclGroup group(state_->library);
  for (int root = 0; root < world_size_; ++root) {
    const Range chunk = chunks[root];
    if (chunk.count == 0) continue;
    check(nccl().reduce(input.data + chunk.begin * size_of(call.dtype),
                        root == rank_ ? output.data : nullptr, chunk.count, type, op, root, comm_,
                        stream));
  }
  group.end();
}

void NcclEngine::start_all_gather(const Call& call, ConstMemory input, Memory output) {
  const NcclType type = nccl_type(call.dtype);
  const NcclStream stream = state_->queue->stream();
  const Chunks chunks(call.count, world_size_);
  if (call.count % size_t(world_size_) == 0)
    return check(
        nccl().all_gather(input.data, output.data, chunks[rank_].count, type, comm_, stream));
  NcclGroup group(state_->library);
  for (int root = 0; root < world_size_; ++root) {
    const Range chunk = chunks[root];
    if (chunk.count == 0) continue;
    std::byte* const to = output.data + chunk.begin * size_of(call.dtype);
    check(nccl().broadcast(root == rank_ ? input.data : to, to, chunk.count, type, root, comm_,
                           stream));
  }
  group.end();
}

void NcclEngine::start_pairwise(const Call& call, ConstMemory input, Memory output) {
  const PairwiseExchange pairwise = pairwise_exchange(call, rank_, world_size_, input, output);
  if (pairwise.own_to.bytes > 0 && pairwise.own_to.data != pairwise.own_from.data)
    state_->queue->copy(pairwise.own_to, pairwise.own_from);
  start_messages(pairwise.messages);
}

void NcclEngine::start_messages(std::span<const PeerMessage> messages) {
  const NcclStream stream = state_->queue->stream();
  NcclGroup group(state_->library);
  for (const PeerMessage& message : messages) {
    const Memory data = message.data;
    if (data.bytes == 0) continue;
    check(message.sends
              ? nccl().send(data.data, data.bytes, NcclType::kUint8, message.peer, comm_, stream)
              : nccl().recv(data.data, data.bytes, NcclType::kUint8, message.peer, comm_, stream));
  }
  group.end();
}

void NcclEngine::exchange(std::span<const PeerMessage> messages, Deadline deadline) {
  constexpr size_t kAlignment = 64;
  size_t total = 0;
  for (const PeerMessage& message : messages) total += round_up(message.data.bytes, kAlignment);
  const Memory room = staging(staged_input_, total);
  std::vector<PeerMessage> staged(messages.begin(), messages.end());
  size_t offset = 0;
  failed_ = true;
  for (PeerMessage& message : staged) {
    const Memory data = message.data;
    if (data.space != MemorySpace::kHost) continue;
    message.data = room.slice(offset, data.bytes);
    offset += round_up(data.bytes, kAlignment);
    if (message.sends && data.bytes > 0) state_->queue->copy(message.data, data);
  }
  start_messages(staged);
  wait(deadline);
  for (size_t i = 0; i < staged.size(); ++i) {
    const bool arrived = !messages[i].sends && staged[i].data.data != messages[i].data.data;
    if (arrived && messages[i].data.bytes > 0)
      state_->queue->copy(messages[i].data, staged[i].data);
  }
  wait(deadline);
}

std::unique_ptr<Engine> NcclEngine::split(int color, int key, uint32_t /*sequence*/,
                                          Deadline deadline) {
  constexpr int kNoColor = -1;
  NcclComm* part = nullptr;
  NcclConfig config;
  failed_ = true;
  static_cast<void>(state_->queue->stream());  // the GPU is this thread's
  check(nccl().split(comm_, color < 0 ? kNoColor : color, key, &part, &config));
  wait(deadline);
  if (part == nullptr) return nullptr;
  return std::make_unique<NcclEngine>(state_, part, deadline);
}

}  // namespace

NcclUniqueId exchange_unique_id(const NcclLibrary& library, Store& store, Deadline deadline) {
  NcclUniqueId id{};
  const auto make = [&] {
    library.check(library.functions().get_unique_id(&id), "make NCCL's unique id");
    return std::string(id.bytes, sizeof id.bytes);
  };
  const std::string bytes = store.from_rank_0("NCCL's unique id", make, deadline);
  if (bytes.size() != sizeof id.bytes)
    fail(ErrorKind::kPeer, "take NCCL's unique id from rank 0: it has {} bytes, not {}",
         bytes.size(), sizeof id.bytes);
  std::memcpy(id.bytes, bytes.data(), bytes.size());
  return id;
}

std::unique_ptr<Engine> make_nccl_engine(const NcclLibrary& library,
                                         std::unique_ptr<NcclQueue> queue, Device& device,
                                         const TransportContext& ranks) {
  const Hosts hosts = ranks.store->gather("hosts of NCCL's ranks", ranks.host, ranks.deadline);
  const std::vector<int> numbers = number_hosts(hosts);
  auto aborted = std::make_shared<AbortFlag>();
  ranks.store->on_abort([aborted](const FailureVerdict& verdict) {
    aborted->set(fmt::format("rank {}: {}", verdict.rank, verdict.reason));
  });
  const NcclUniqueId id = exchange_unique_id(library, *ranks.store, ranks.deadline);
  static_cast<void>(queue->stream());  // the GPU is this thread's
  NcclComm* comm = nullptr;
  NcclConfig config;
  library.check(library.functions().init_rank(&comm, ranks.world_size, id, ranks.rank, &config),
                fmt::format("join NCCL {} as rank {}", to_string(library.version()), ranks.rank));
  auto state = std::shared_ptr<NcclEngine::EngineState>(
      new NcclEngine::EngineState{library, std::move(queue), device, std::move(aborted),
                                  numbers.empty() ? 0 : numbers[size_t(ranks.rank)]});
  return std::make_unique<NcclEngine>(std::move(state), comm, ranks.deadline);
}

}  // namespace gxp
