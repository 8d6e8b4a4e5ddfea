#include "lib/collective/communicator.h"

#include <fmt/format.h>

#include "lib/collective/call.h"
#include "lib/collective/call_queue.h"
#include "lib/collective/choice.h"
#include "lib/collective/executor.h"

namespace gxp {

struct Communicator::Impl {
  Impl(std::unique_ptr<Transport> transport, Device& device, const CommunicatorOptions& options);
  ~Impl();

  // These check what the caller passed, on its thread.
  [[nodiscard]] static Call make_call(Collective collective, Memory data, DType dtype,
                                      ReduceOp op = ReduceOp::kSum);
  [[nodiscard]] Call make_broadcast(Memory data, int root) const;
  void run(const Call& call, Memory data);
  [[nodiscard]] Pending start(const Call& call, Memory data);

 private:
  void execute(Call call, Memory data);
  void finish_average(const Call& call, Memory data) const;

 public:
  CommunicatorOptions options;
  std::unique_ptr<Transport> transport;

 private:
  Executor executor_;
  uint32_t sequence_ = 0;
  std::string failure_;  // of the first call that failed
  CallQueue queue_;      // its thread and the caller's take turns with all of the above
};

Communicator::Impl::Impl(std::unique_ptr<Transport> transport_in, Device& device,
                         const CommunicatorOptions& options_in)
    : options(options_in),
      transport(std::move(transport_in)),
      executor_(*transport, device, options.segment_bytes),
      queue_(transport->rank()) {
  check_algorithm_name(options.algorithm);
}

Communicator::Impl::~Impl() {
  if (!queue_.idle()) transport->abort("the communicator was destroyed before its calls were done");
}

Call Communicator::Impl::make_call(Collective collective, Memory data, DType dtype, ReduceOp op) {
  GXP_ASSERT(data.bytes % size_of(dtype) == 0);
  if (data.space != MemorySpace::kHost) {
    fail(ErrorKind::kUnavailable, "{}: device memory is not supported; copy it to the host first",
         to_string(collective));
  }
  return {.collective = collective, .dtype = dtype, .op = op, .count = data.bytes / size_of(dtype)};
}

Call Communicator::Impl::make_broadcast(Memory data, int root) const {
  GXP_ASSERT(0 <= root && root < transport->world_size());
  Call call = make_call(Collective::kBroadcast, data, DType::kU8);
  call.root = root;
  return call;
}

void Communicator::Impl::run(const Call& call, Memory data) {
  queue_.drain();
  execute(call, data);
}

Pending Communicator::Impl::start(const Call& call, Memory data) {
  return queue_.push([this, call, data] { execute(call, data); });
}

void Communicator::Impl::execute(Call call, Memory data) {
  call.sequence = sequence_++;
  if (!failure_.empty()) {
    fail(ErrorKind::kPeer, "{}: not started, an earlier call failed: {}", to_string(call),
         failure_);
  }
  const Choice choice = choose_algorithm(call.collective, transport->world_size(), data.bytes,
                                         options.algorithm, options.layout_invariant);
  try {
    executor_.execute(*choice.algorithm, call, data, Deadline::after(options.timeout));
  } catch (const Error& error) {
    failure_ = fmt::format("{} at rank {}: {}", to_string(call), transport->rank(), error.what());
    transport->abort(failure_);
    throw Error(error.kind(), failure_);
  }
  if (call.op == ReduceOp::kAvg) finish_average(call, data);
}

void Communicator::Impl::finish_average(const Call& call, Memory data) const {
  const int world_size = transport->world_size();
  Range done{0, call.count};
  if (call.collective == Collective::kReduceScatter) {
    done = Chunks(call.count, world_size)[transport->rank()];
  }
  const size_t element_bytes = size_of(call.dtype);
  scale(data.slice(done.begin * element_bytes, done.count * element_bytes), call.dtype,
        1.0 / world_size);
}

Communicator::Communicator(std::unique_ptr<Transport> transport, Device& device,
                           const CommunicatorOptions& options)
    : impl_(std::make_unique<Impl>(std::move(transport), device, options)) {}
Communicator::~Communicator() = default;

int Communicator::rank() const { return impl_->transport->rank(); }
int Communicator::world_size() const { return impl_->transport->world_size(); }
std::string_view Communicator::transport_name() const { return impl_->transport->name(); }
WireCounters Communicator::counters() const { return impl_->transport->counters(); }
void Communicator::abort(std::string_view reason) noexcept { impl_->transport->abort(reason); }

void Communicator::all_reduce(Memory data, DType dtype, ReduceOp op) {
  impl_->run(impl_->make_call(Collective::kAllReduce, data, dtype, op), data);
}
void Communicator::reduce_scatter(Memory data, DType dtype, ReduceOp op) {
  impl_->run(impl_->make_call(Collective::kReduceScatter, data, dtype, op), data);
}
void Communicator::all_gather(Memory data, DType dtype) {
  impl_->run(impl_->make_call(Collective::kAllGather, data, dtype), data);
}
void Communicator::broadcast(Memory data, int root) {
  impl_->run(impl_->make_broadcast(data, root), data);
}
void Communicator::barrier() { impl_->run({.collective = Collective::kBarrier}, {}); }

Pending Communicator::start_all_reduce(Memory data, DType dtype, ReduceOp op) {
  return impl_->start(impl_->make_call(Collective::kAllReduce, data, dtype, op), data);
}
Pending Communicator::start_reduce_scatter(Memory data, DType dtype, ReduceOp op) {
  return impl_->start(impl_->make_call(Collective::kReduceScatter, data, dtype, op), data);
}
Pending Communicator::start_all_gather(Memory data, DType dtype) {
  return impl_->start(impl_->make_call(Collective::kAllGather, data, dtype), data);
}
Pending Communicator::start_broadcast(Memory data, int root) {
  return impl_->start(impl_->make_broadcast(data, root), data);
}

std::string Communicator::explain_choice(size_t bytes) const {
  const Choice choice = choose_algorithm(Collective::kAllReduce, world_size(), bytes,
                                         impl_->options.algorithm, impl_->options.layout_invariant);
  return fmt::format("{}: {}", choice.algorithm->name, choice.reason);
}

}  // namespace gxp
