#include "lib/collective/engine/nccl/nccl_engine.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/collective/algorithm/call.h"
#include "lib/collective/engine/gather.h"
#include "lib/collective/engine/library_wait.h"
#include "lib/collective/engine/nccl/nccl_calls.h"
#include "lib/collective/engine/nccl/nccl_communicator.h"
#include "lib/collective/engine/nccl/nccl_join.h"
#include "lib/collective/engine/nccl/nccl_memory.h"
#include "lib/collective/engine/nccl/nccl_reduction.h"
#include "lib/collective/engine/queued_call.h"
#include "lib/transport/abort_flag.h"

namespace gxp {
namespace {

// A call of NCCL's between two marks of the queue.
class NcclQueuedCall final : public QueuedCall {
 public:
  struct Parts {
    Call call;
    uint8_t group = 0;
    std::shared_ptr<NcclCommunicator> comm;  // owners: the engine and its queued calls
    std::shared_ptr<AbortFlag> aborted;      // owners: the engines and the store's alarm
    FlightRecorder* recorder = nullptr;      // learns of the call when the GPU comes to it
  };
  NcclQueuedCall(Parts parts, std::unique_ptr<NcclMark> begin, std::unique_ptr<NcclMark> end)
      : parts_(std::move(parts)), begin_(std::move(begin)), end_(std::move(end)) {}
  [[nodiscard]] Progress look() override;

 private:
  Parts parts_;
  std::unique_ptr<NcclMark> begin_;
  std::unique_ptr<NcclMark> end_;
  bool has_begun_ = false;
};

QueuedCall::Progress NcclQueuedCall::look() {
  // A call that has ended by an abort is not done.
  parts_.aborted->check();
  static_cast<void>(parts_.comm->is_ready());
  if (!has_begun_) {
    if (!begin_->passed()) return Progress::kWaits;
    has_begun_ = true;
    if (parts_.recorder != nullptr)
      parts_.recorder->enter(parts_.call, "nccl", parts_.group, Deadline::Clock::now());
  }
  if (!end_->passed()) return Progress::kRuns;
  parts_.aborted->check();
  if (parts_.recorder != nullptr) parts_.recorder->done();
  return Progress::kDone;
}

// What a rank tells the others of its group.
struct PlaceOfRank {
  int host = 0;
  int rank = 0;        // in the world
  int next_group = 0;  // the lowest number that it has not used
};

class NcclEngine final : public LibraryEngine {
 public:
  // What the engines of all groups have in common.
  struct EngineState {
    NcclLibrary library;
    std::unique_ptr<NcclQueue> queue;
    Device& device;                      // of allocate()
    std::shared_ptr<AbortFlag> aborted;  // owners: this and the store's alarm
    FlightRecorder* recorder = nullptr;
    NcclConfig config{};
    PlaceOfRank place{};
    NcclCommunicators communicators{};
  };
  // Takes the communicator, which may still be in progress.
  NcclEngine(std::shared_ptr<EngineState> state, NcclComm* comm, Deadline deadline);
  NcclEngine(const NcclEngine&) = delete;
  NcclEngine& operator=(const NcclEngine&) = delete;
  ~NcclEngine() override;

  [[nodiscard]] bool supports_memory(MemorySpace /*space*/) const override { return true; }

  void execute(const Call& call, ConstMemory input, Memory output, Deadline deadline) override;
  [[nodiscard]] bool queues_calls() const override {
    return state_->queue->device().space() == MemorySpace::kCuda;
  }
  [[nodiscard]] std::unique_ptr<QueuedCall> enqueue(const Call& call, ConstMemory input,
                                                    Memory output, Stream& stream,
                                                    Deadline deadline) override;
  void exchange(std::span<const PeerMessage> messages, Deadline deadline) override;
  [[nodiscard]] std::unique_ptr<Engine> split(int color, int key, uint32_t sequence,
                                              Deadline deadline) override;
  void keep_memory(Memory memory, Deadline deadline) override;
  void forget_memory(Memory memory) noexcept override;
  void abort(std::string_view reason) noexcept override {
    state_->aborted->set(reason);
    state_->communicators.abort(reason);
  }

 private:
  [[nodiscard]] const NcclFunctions& nccl() const { return state_->library.functions(); }
  void find_place(Deadline deadline);
  void wait_until(const std::function<bool()>& done, Deadline deadline);
  void wait_for_gpu(Deadline deadline);
  template <class Start>
  void start(const Start& start_at);
  void run(const Call& call, ConstMemory input, Memory output, Deadline deadline);
  template <class Fact>
  [[nodiscard]] std::vector<Fact> gather(const Fact& mine, Deadline deadline);
  [[nodiscard]] NcclComm* join_group(int color, int key, Deadline deadline);
  [[nodiscard]] Memory staging(NcclScratch& scratch, size_t bytes, Deadline deadline);
  [[nodiscard]] ConstMemory on_gpu(ConstMemory input, bool always, Deadline deadline);

  std::shared_ptr<EngineState> state_;      // owners: this engine and those split from it
  std::shared_ptr<NcclCommunicator> comm_;  // owners: this engine and its queued calls
  bool failed_ = true;                      // until it works: only an abort ends the communicator
  uint8_t group_ = 0;
  NcclScratch staged_input_;
  NcclScratch staged_output_;
  std::vector<std::unique_ptr<NcclRegistration>> kept_;
};

constexpr std::chrono::seconds kEndPatience{5};  // at the end

// NCCL forbids it.
bool overlaps(const Call& call, const ConstMemory& input, const Memory& output) {
  return call.collective == Collective::kAllToAll && input.data == output.data;
}

NcclEngine::NcclEngine(std::shared_ptr<EngineState> state, NcclComm* comm, Deadline deadline)
    : LibraryEngine("nccl", "NCCL", state->device),
      state_(std::move(state)),
      comm_(state_->communicators.add(state_->library, comm)),
      staged_input_(state_->library, comm_, state_->queue->device()),
      staged_output_(state_->library, comm_, state_->queue->device()) {
  find_place(deadline);
}

void NcclEngine::find_place(Deadline deadline) {
  wait_until([this] { return comm_->is_ready(); }, deadline);
  comm_->use("ask NCCL for the rank", [&](NcclComm* comm) {
    const NcclResult result = nccl().user_rank(comm, &rank_);
    return result == NcclResult::kSuccess ? nccl().count(comm, &world_size_) : result;
  });
  const std::vector<PlaceOfRank> places = gather(state_->place, deadline);
  std::vector<int> hosts;
  for (const PlaceOfRank& place : places) {
    hosts.push_back(place.host);
    group_ = uint8_t(std::max(int(group_), place.next_group));
  }
  hosts_ = number_hosts(hosts);
  state_->place.next_group = group_ + 1;
  if (state_->recorder != nullptr)
    state_->recorder->define_group(group_, places.front().rank, world_size_);
}

template <class Fact>
std::vector<Fact> NcclEngine::gather(const Fact& mine, Deadline deadline) {
  return gather_values(rank_, world_size_, mine,
                       [&](const Call& call, ConstMemory input, Memory output) {
                         run(call, input, output, deadline);
                       });
}

// What is registered is deregistered before the communicator ends in good order; kernels that may
// use it end before it does.
NcclEngine::~NcclEngine() {
  try {
    if (failed_ || state_->aborted->is_set()) {
      comm_->abort("its owner has ended");
      return;
    }
    kept_.clear();
    staged_input_.release();
    staged_output_.release();
    wait_until([this] { return comm_->is_ready(); }, Deadline::after(kEndPatience));
    comm_->use("end NCCL's communicator", [&](NcclComm* comm) { return nccl().finalize(comm); });
    wait_until([this] { return comm_->is_ready(); }, Deadline::after(kEndPatience));
    comm_->destroy();
  } catch (const Error& error) {
    log_warn("engine nccl: {}", error.what());
  }
}

void NcclEngine::wait_until(const std::function<bool()>& done, Deadline deadline) {
  failed_ = true;
  wait_for_ranks("NCCL", *state_->aborted, done, deadline);
  failed_ = false;
}

// Until NCCL has queued what was started, and the GPU has done it.
void NcclEngine::wait_for_gpu(Deadline deadline) {
  wait_until([this] { return comm_->is_ready() && state_->queue->done(); }, deadline);
}

// What throws from here on leaves NCCL in the midst of a call.
template <class Start>
void NcclEngine::start(const Start& start_at) {
  failed_ = true;
  comm_->use("call NCCL", [&](NcclComm* comm) {
    start_at(
        NcclTarget{.library = state_->library,
                   .comm = comm,
                   .stream = state_->queue->stream(),
                   .rank = rank_,
                   .world_size = world_size_,
                   .copy = [&](Memory to, ConstMemory from) { state_->queue->copy(to, from); }});
    return NcclResult::kSuccess;
  });
}

// Work that was queued before may use the smaller memory, which is replaced.
Memory NcclEngine::staging(NcclScratch& scratch, size_t bytes, Deadline deadline) {
  static_cast<void>(state_->queue->stream());  // the GPU is this thread's
  if (scratch.replaces(bytes)) wait_for_gpu(deadline);
  return scratch.grow(bytes);
}

// Where it is, or, if it is host memory, a copy.
ConstMemory NcclEngine::on_gpu(ConstMemory input, bool always, Deadline deadline) {
  if (!always && input.space != MemorySpace::kHost) return input;
  const Memory copy = staging(staged_input_, input.bytes, deadline);
  if (copy.bytes > 0) state_->queue->copy(copy, input);
  return copy;
}

void NcclEngine::execute(const Call& call, ConstMemory input, Memory output, Deadline deadline) {
  FlightRecorder* const recorder = state_->recorder;
  if (recorder != nullptr) recorder->enter(call, "nccl", group_, Deadline::Clock::now());
  run(call, input, output, deadline);
  if (recorder != nullptr) recorder->done();
}

void NcclEngine::run(const Call& call, ConstMemory input, Memory output, Deadline deadline) {
  check_nccl_reduction(call);
  if (call.collective == Collective::kBarrier) {
    const Memory word = staging(staged_output_, 1, deadline);
    start([&](const NcclTarget& target) { start_nccl_barrier(target, word); });
    return wait_for_gpu(deadline);
  }
  if (call.count == 0) return;
  const bool host = output.space == MemorySpace::kHost;
  const ConstMemory from = on_gpu(input, overlaps(call, input, output), deadline);
  const Memory to = host ? staging(staged_output_, output.bytes, deadline) : output;
  start([&](const NcclTarget& target) { start_nccl_call(target, call, from, to); });
  wait_for_gpu(deadline);
  if (!host || output.bytes == 0) return;
  state_->queue->copy(output, to);
  wait_for_gpu(deadline);
}

std::unique_ptr<QueuedCall> NcclEngine::enqueue(const Call& call, ConstMemory input, Memory output,
                                                Stream& stream, Deadline deadline) {
  check_nccl_reduction(call);
  if (call.count == 0) return nullptr;
  NcclQueue& queue = *state_->queue;
  queue.follow(stream);
  auto begin = queue.mark();
  const ConstMemory from = on_gpu(input, overlaps(call, input, output), deadline);
  start([&](const NcclTarget& target) { start_nccl_call(target, call, from, output); });
  // A thread of NCCL's queues it, after which the queue's end is that of the call.
  wait_until([this] { return comm_->is_ready(); }, deadline);
  auto end = queue.mark();
  queue.precede(stream);
  return std::make_unique<NcclQueuedCall>(
      NcclQueuedCall::Parts{call, group_, comm_, state_->aborted, state_->recorder},
      std::move(begin), std::move(end));
}

void NcclEngine::exchange(std::span<const PeerMessage> messages, Deadline deadline) {
  constexpr size_t kAlignment = 64;
  size_t total = 0;
  for (const PeerMessage& message : messages) total += round_up(message.data.bytes, kAlignment);
  const Memory room = staging(staged_input_, total, deadline);
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
  start([&](const NcclTarget& target) { start_nccl_messages(target, staged); });
  wait_for_gpu(deadline);
  for (size_t i = 0; i < staged.size(); ++i) {
    const bool arrived = !messages[i].sends && staged[i].data.data != messages[i].data.data;
    if (arrived && messages[i].data.bytes > 0)
      state_->queue->copy(messages[i].data, staged[i].data);
  }
  wait_for_gpu(deadline);
}

std::unique_ptr<Engine> NcclEngine::split(int color, int key, uint32_t /*sequence*/,
                                          Deadline deadline) {
  const bool has_split = has(state_->library.version(), NcclFeature::kSplit);
  NcclComm* part = has_split ? nullptr : join_group(color, key, deadline);
  NcclConfig config = state_->config;
  if (has_split) {
    static_cast<void>(state_->queue->stream());  // the GPU is this thread's
    failed_ = true;
    comm_->use("split NCCL's communicator", [&](NcclComm* comm) {
      return nccl().split(comm, color < 0 ? kNcclNoColor : color, key, &part, &config);
    });
    wait_until([this] { return comm_->is_ready(); }, deadline);
  }
  if (part == nullptr) return nullptr;
  return std::make_unique<NcclEngine>(state_, part, deadline);
}

// As ncclCommSplit(): the first rank of a group makes a unique id, and the others learn it.
NcclComm* NcclEngine::join_group(int color, int key, Deadline deadline) {
  const std::vector<int> members =
      ranks_of_color(color, gather(SplitRequest{color, key}, deadline));
  const bool leads = color >= 0 && members.front() == rank_;
  const auto ids = gather(leads ? make_unique_id(state_->library) : NcclUniqueId{}, deadline);
  if (color < 0) return nullptr;
  NcclComm* part = nullptr;
  NcclConfig config = state_->config;
  const int place = int(std::ranges::find(members, rank_) - members.begin());
  state_->library.check(
      nccl().init_rank(&part, int(members.size()), ids[size_t(members.front())], place, &config),
      "join a group of NCCL's ranks");
  return part;
}

void NcclEngine::keep_memory(Memory memory, Deadline deadline) {
  if (memory.bytes == 0 || !has(state_->library.version(), NcclFeature::kRegistration)) return;
  NcclRegistration::Kind kind = NcclRegistration::Kind::kBuffer;
  if (has(state_->library.version(), NcclFeature::kWindows)) {
    // NCCL maps whole allocations that have a file descriptor.
    const DeviceSharing* const sharing = state_->queue->device().sharing();
    const AllocationOffset place = sharing == nullptr ? AllocationOffset{} : sharing->find(memory);
    const uint64_t mine = place.allocation != 0 && place.offset == 0 ? memory.bytes : 0;
    const std::vector<uint64_t> all = gather(mine, deadline);
    if (mine > 0 && std::ranges::all_of(all, [&](uint64_t theirs) { return theirs == mine; }))
      kind = NcclRegistration::Kind::kWindow;
  }
  kept_.push_back(std::make_unique<NcclRegistration>(state_->library, comm_, memory, kind));
  wait_until([this] { return comm_->is_ready(); }, deadline);
}

void NcclEngine::forget_memory(Memory memory) noexcept {
  try {
    std::erase_if(kept_, [&](const auto& kept) { return kept->memory().data == memory.data; });
    if (failed_ || state_->aborted->is_set()) return;
    wait_until([this] { return comm_->is_ready(); }, Deadline::after(kEndPatience));
  } catch (const std::exception& error) {
    log_warn("engine nccl: {}", error.what());
  }
}

}  // namespace

std::unique_ptr<Engine> make_nccl_engine(NcclParts parts, const TransportContext& ranks) {
  const NcclLibrary& library = parts.library;
  const DeviceSharing* const sharing = parts.queue->device().sharing();
  const std::vector<int> hosts = bootstrap_nccl_ranks(
      {ranks.host, sharing == nullptr ? "" : sharing->identity(), to_string(library.version())},
      library, ranks);
  auto aborted = std::make_shared<AbortFlag>();
  ranks.store->on_abort([aborted](const FailureVerdict& verdict) {
    aborted->set(fmt::format("rank {}: {}", verdict.rank, verdict.reason));
  });
  const NcclUniqueId id = exchange_unique_id(library, *ranks.store, ranks.deadline);
  static_cast<void>(parts.queue->stream());  // the GPU is this thread's
  NcclComm* comm = nullptr;
  NcclConfig config = nccl_config(library.version(), parts.ctas);
  library.check(library.functions().init_rank(&comm, ranks.world_size, id, ranks.rank, &config),
                fmt::format("join NCCL {} as rank {}", to_string(library.version()), ranks.rank));
  auto state = std::shared_ptr<NcclEngine::EngineState>(new NcclEngine::EngineState{
      library, std::move(parts.queue), parts.device, std::move(aborted), parts.recorder, config,
      PlaceOfRank{hosts.empty() ? 0 : hosts[size_t(ranks.rank)], ranks.rank, 0}});
  return std::make_unique<NcclEngine>(std::move(state), comm, ranks.deadline);
}

}  // namespace gxp
