#include "lib/collective/communicator.h"

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "lib/collective/communicator_state.h"
#include "lib/collective/engine/native/native_engine.h"

namespace gxp {
namespace {

struct Done {
  ~Done() { --count; }
  std::atomic<int>& count;
};

}  // namespace

class Communicator::Impl {
 public:
  Impl(std::shared_ptr<CommunicatorState> state, std::unique_ptr<Engine> engine,
       std::chrono::milliseconds timeout)
      : state_(std::move(state)), engine_(std::move(engine)), timeout_(timeout) {}
  ~Impl();

  [[nodiscard]] Engine& engine() const { return *engine_; }
  // By reference: a copy of what was just written field by field costs as much as a cache miss.
  void run(const PlacedCall& placed);
  [[nodiscard]] Pending start(const PlacedCall& placed);
  void enqueue(const PlacedCall& placed, Stream& stream);
  void check_failures() const { state_->check(); }
  void note_message(bool sends, int peer, ConstMemory data);
  void begin_group();
  void end_group();
  [[nodiscard]] std::unique_ptr<Impl> split(int color, int key);
  [[nodiscard]] JoinedDevice join_device(const FoldingDevice& device);
  [[nodiscard]] KeptMemory keep(Memory memory);
  void set_selection(const SelectionSettings& settings);

 private:
  void check(const PlacedCall& placed);
  void execute(const PlacedCall& placed);
  void settle();
  template <class What, class Act>
  void guard(const What& what, const Act& act);

  std::shared_ptr<CommunicatorState> state_;  // owners: this communicator and those split from it
  std::unique_ptr<Engine> engine_;
  std::chrono::milliseconds timeout_;
  struct Checked {
    Call call;
    size_t input_bytes = 0;
    size_t output_bytes = 0;
  };
  std::optional<Checked> checked_;  // the last one
  uint32_t sequence_ = 0;
  bool grouping_ = false;
  std::vector<PeerMessage> messages_;
  std::atomic<int> started_{0};  // calls that are not done
};

namespace {

void check_kind(const Call& call, int world_size) {
  const std::string_view name = to_string(call.collective);
  if (reduces(call.collective)) {
    const Support support = supports(call.op, call.dtype);
    if (!support) fail(ErrorKind::kUsage, "{}: {}", name, support.reason);
  }
  if (call.collective == Collective::kAllToAll && call.count % size_t(world_size) != 0) {
    fail(ErrorKind::kUsage, "{}: {} elements cannot be cut into {} equal chunks", name, call.count,
         world_size);
  }
}

}  // namespace

Communicator::Impl::~Impl() {
  const bool busy = engine_->queues_calls() && state_->watch.is_busy(*engine_);
  if (started_ > 0 || busy)
    engine_->abort("the communicator was destroyed before its calls were done");
  if (started_ > 0) state_->queue.drain();
  if (engine_->queues_calls()) state_->watch.forget(*engine_);
}

// On the caller's thread, before anything has begun. What was checked last needs no check: callers
// repeat their calls.
void Communicator::Impl::check(const PlacedCall& placed) {
  const auto& [call, input, output] = placed;
  const bool host = input.space == MemorySpace::kHost && output.space == MemorySpace::kHost;
  if (!host && !engine_->supports_memory(MemorySpace::kCuda)) {
    fail(ErrorKind::kUnavailable,
         "{}: engine '{}' cannot access the ranks' device memory; copy it to the host first",
         to_string(call.collective), engine_->name());
  }
  GXP_ASSERT(!grouping_ && 0 <= call.root && call.root < engine_->world_size());
  if (call.collective == Collective::kBarrier) {
    GXP_ASSERT(input.bytes == 0 && output.bytes == 0);
    return;
  }
  if (!checked_ || !same_signature(checked_->call, call)) {
    check_kind(call, engine_->world_size());
    const size_t element_bytes = size_of(call.dtype);
    const Extents extents = extents_of(call, engine_->rank(), engine_->world_size());
    checked_ = {call, extents.input.count * element_bytes, extents.output.count * element_bytes};
  }
  GXP_ASSERT(input.bytes == checked_->input_bytes && output.bytes == checked_->output_bytes);
}

void Communicator::Impl::run(const PlacedCall& placed) {
  check(placed);
  settle();
  execute(placed);
}

Pending Communicator::Impl::start(const PlacedCall& placed) {
  check(placed);
  if (engine_->queues_calls()) state_->watch.drain();
  ++started_;
  return state_->queue.push([this, placed] {
    const Done done{started_};
    execute(placed);
  });
}

// Calls act(deadline). `what` becomes text only if something is wrong.
template <class What, class Act>
void Communicator::Impl::guard(const What& what, const Act& act) {
  if (const auto failure = state_->failed())
    fail(ErrorKind::kPeer, "{}: not started, an earlier call failed: {}", what(), failure->what());
  try {
    act(Deadline::roughly_after(timeout_));
  } catch (const Error& error) {
    throw state_->end(error, what(), *engine_);
  }
}

// What was started or queued is done, or has failed.
void Communicator::Impl::settle() {
  state_->queue.drain();
  if (engine_->queues_calls()) state_->watch.drain();
}

void Communicator::Impl::enqueue(const PlacedCall& placed, Stream& stream) {
  check(placed);
  if (!engine_->queues_calls() || is_host_memory(placed.input) || is_host_memory(placed.output) ||
      placed.call.collective == Collective::kBarrier)
    fail(ErrorKind::kUsage, "queue {}: engine '{}' {}", to_string(placed.call), engine_->name(),
         engine_->queues_calls() ? "queues calls on device memory only" : "queues no calls");
  state_->queue.drain();
  Call numbered = placed.call;
  numbered.sequence = sequence_++;
  guard([&] { return to_string(numbered); },
        [&](Deadline deadline) {
          auto queued = engine_->enqueue(numbered, placed.input, placed.output, stream, deadline);
          if (queued != nullptr)
            state_->watch.add({to_string(numbered), engine_.get(), std::move(queued), timeout_});
        });
}

void Communicator::Impl::execute(const PlacedCall& placed) {
  Call numbered = placed.call;
  numbered.sequence = sequence_++;
  guard([&] { return to_string(numbered); },
        [&](Deadline deadline) {
          engine_->execute(numbered, placed.input, placed.output, deadline);
        });
}

void Communicator::Impl::set_selection(const SelectionSettings& settings) {
  settle();
  engine_->set_selection(settings);
}

void Communicator::Impl::note_message(bool sends, int peer, ConstMemory data) {
  GXP_ASSERT(0 <= peer && peer < engine_->world_size() && peer != engine_->rank());
  if (!engine_->supports_p2p_memory(data.space))
    fail(
        ErrorKind::kUnavailable,
        "{} rank {}: device memory is not supported by engine '{}' over transport '{}'; copy it to "
        "the host first",
        sends ? "send to" : "receive from", peer, engine_->name(), engine_->transport_name());
  messages_.push_back({sends, peer, {const_cast<std::byte*>(data.data), data.bytes, data.space}});
  if (!grouping_) end_group();
}

void Communicator::Impl::begin_group() {
  GXP_ASSERT(!grouping_);
  grouping_ = true;
}

void Communicator::Impl::end_group() {
  grouping_ = false;
  settle();
  const auto messages = std::exchange(messages_, {});
  guard([] { return "send and receive"; },
        [&](Deadline deadline) { engine_->exchange(messages, deadline); });
}

std::unique_ptr<Communicator::Impl> Communicator::Impl::split(int color, int key) {
  settle();
  std::unique_ptr<Engine> part;
  guard([] { return "split"; },
        [&](Deadline deadline) { part = engine_->split(color, key, sequence_++, deadline); });
  return part ? std::make_unique<Impl>(state_, std::move(part), timeout_) : nullptr;
}

KeptMemory Communicator::Impl::keep(Memory memory) {
  settle();
  guard([] { return "register memory"; },
        [&](Deadline deadline) { engine_->keep_memory(memory, deadline); });
  return {*engine_, memory};
}

JoinedDevice Communicator::Impl::join_device(const FoldingDevice& device) {
  settle();
  Support support;
  guard([] { return "join device"; },
        [&](Deadline deadline) { support = engine_->join_device(device, sequence_++, deadline); });
  return {*engine_, std::move(support), [state = state_] { state->watch.forget_all(); }};
}

Communicator::Communicator(std::unique_ptr<Transport> transport, Device& device,
                           const CommunicatorOptions& options)
    : Communicator(
          std::make_unique<NativeEngine>(std::move(transport), device, options.selection,
                                         options.profile, options.reporting.recorder, options.plan),
          options.timeout, options.reporting) {}
Communicator::Communicator(std::unique_ptr<Engine> engine, std::chrono::milliseconds timeout,
                           const FailureReporting& reporting) {
  auto state = std::make_shared<CommunicatorState>(engine->rank(), reporting);
  impl_ = std::make_unique<Impl>(std::move(state), std::move(engine), timeout);
}
Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

int Communicator::rank() const { return impl_->engine().rank(); }
int Communicator::world_size() const { return impl_->engine().world_size(); }
JoinedDevice Communicator::join_device(const FoldingDevice& device) {
  return impl_->join_device(device);
}
KeptMemory Communicator::keep(Memory memory) { return impl_->keep(memory); }
bool Communicator::supports_memory(MemorySpace space) const {
  return impl_->engine().supports_memory(space);
}
bool Communicator::supports_p2p_memory(MemorySpace space) const {
  return impl_->engine().supports_p2p_memory(space);
}
std::span<const int> Communicator::hosts() const { return impl_->engine().hosts(); }
bool Communicator::share_host(int rank, int other) const {
  const std::span<const int> of = hosts();
  return of.empty() || of[size_t(rank)] == of[size_t(other)];
}
void Communicator::set_selection(const SelectionSettings& settings) {
  impl_->set_selection(settings);
}
std::string_view Communicator::engine_name() const { return impl_->engine().name(); }
std::string_view Communicator::transport_name() const { return impl_->engine().transport_name(); }
WireCounters Communicator::counters() const { return impl_->engine().counters(); }
uint64_t Communicator::bytes_sent_between_hosts() const {
  return impl_->engine().bytes_sent_between_hosts();
}
void Communicator::abort(std::string_view reason) noexcept { impl_->engine().abort(reason); }

void Communicator::run(const Call& call, ConstMemory input, Memory output) {
  impl_->run({call, input, output});
}
bool Communicator::queues_calls() const { return impl_->engine().queues_calls(); }
void Communicator::enqueue(const Call& call, ConstMemory input, Memory output, Stream& stream) {
  impl_->enqueue({call, input, output}, stream);
}
void Communicator::check() const { impl_->check_failures(); }
Pending Communicator::start(const Call& call, ConstMemory input, Memory output) {
  return impl_->start({call, input, output});
}

PlacedCall Communicator::whole(const Call& call, Memory data) const {
  return in_place(call, data, rank(), world_size());
}
void Communicator::run_in_place(const Call& call, Memory data) { impl_->run(whole(call, data)); }
Pending Communicator::start_in_place(const Call& call, Memory data) {
  return impl_->start(whole(call, data));
}
void Communicator::all_reduce(Memory data, DType dtype, ReduceOp op) {
  impl_->run(whole({.collective = Collective::kAllReduce, .dtype = dtype, .op = op}, data));
}
Pending Communicator::start_all_reduce(Memory data, DType dtype, ReduceOp op) {
  return impl_->start(
      whole({.collective = Collective::kAllReduce, .dtype = dtype, .op = op}, data));
}
void Communicator::reduce_scatter(Memory data, DType dtype, ReduceOp op) {
  impl_->run(whole({.collective = Collective::kReduceScatter, .dtype = dtype, .op = op}, data));
}
Pending Communicator::start_reduce_scatter(Memory data, DType dtype, ReduceOp op) {
  return impl_->start(
      whole({.collective = Collective::kReduceScatter, .dtype = dtype, .op = op}, data));
}
void Communicator::all_gather(Memory data, DType dtype) {
  impl_->run(whole({.collective = Collective::kAllGather, .dtype = dtype}, data));
}
Pending Communicator::start_all_gather(Memory data, DType dtype) {
  return impl_->start(whole({.collective = Collective::kAllGather, .dtype = dtype}, data));
}
void Communicator::broadcast(Memory data, int root) {
  impl_->run(whole({.collective = Collective::kBroadcast, .root = root}, data));
}
Pending Communicator::start_broadcast(Memory data, int root) {
  return impl_->start(whole({.collective = Collective::kBroadcast, .root = root}, data));
}
void Communicator::barrier() { impl_->run({}); }

void Communicator::send(int to, ConstMemory data) { impl_->note_message(true, to, data); }
void Communicator::recv(int from, Memory data) { impl_->note_message(false, from, data); }
void Communicator::sendrecv(int to, ConstMemory leaving, int from, Memory arriving) {
  impl_->begin_group();
  send(to, leaving);
  recv(from, arriving);
  impl_->end_group();
}
void Communicator::begin_group() { impl_->begin_group(); }
void Communicator::end_group() { impl_->end_group(); }

std::unique_ptr<Communicator> Communicator::split(int color, int key) {
  auto impl = impl_->split(color, key);
  if (!impl) return nullptr;
  return std::unique_ptr<Communicator>(new Communicator(std::move(impl)));
}

CommunicatorMemory Communicator::allocate(size_t bytes) { return impl_->engine().allocate(bytes); }
AlgorithmPlan Communicator::plan(const Call& call, MemoryOrigin origin) const {
  return impl_->engine().plan(call, origin);
}

}  // namespace gxp
