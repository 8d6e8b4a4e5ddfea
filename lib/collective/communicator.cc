#include "lib/collective/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/log.h"
#include "lib/collective/call_queue.h"
#include "lib/collective/executor.h"
#include "lib/collective/shared_executor.h"
#include "lib/transport/shared_space.h"

namespace gxp {
namespace {

struct Done {
  ~Done() { --count; }
  std::atomic<int>& count;
};

}  // namespace

// What a communicator and all that were split from it have in common.
struct Link {
  Link(std::unique_ptr<Transport> transport_in, Device& device_in)
      : transport(std::move(transport_in)), device(device_in), queue(transport->rank()) {}
  std::unique_ptr<Transport> transport;
  Device& device;
  int next_group = 1;
  std::atomic<uint64_t> shared_bytes{0};  // that this rank gave without messages
  std::string failure;                    // of the first call that failed
  CallQueue queue;  // its thread and the caller's take turns with all of the above
};

class Communicator::Impl {
 public:
  Impl(std::shared_ptr<Link> link, const CommunicatorOptions& options, std::vector<int> members,
       int group);
  ~Impl();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int world_size() const { return int(members_.size()); }
  [[nodiscard]] Link& link() const { return *link_; }
  [[nodiscard]] bool grouping() const { return grouping_; }

  void run(const Call& call, ConstMemory input, Memory output);
  [[nodiscard]] Pending start(const Call& call, ConstMemory input, Memory output);
  void note_message(bool sends, int peer, ConstMemory data);
  void begin_group();
  void end_group();
  [[nodiscard]] std::unique_ptr<Impl> split(int color, int key);
  [[nodiscard]] CommunicatorMemory allocate(size_t bytes);
  [[nodiscard]] const Plan& plan(const Call& call, bool staged);
  [[nodiscard]] std::span<const int> hosts() const { return hosts_; }
  void use(const ChoiceSettings& settings);

 private:
  struct Message {
    bool sends = false;
    int peer = 0;  // in the group
    std::byte* data = nullptr;
    size_t bytes = 0;
  };

  void check(const Call& call, ConstMemory input, ConstMemory output) const;
  void execute(Call call, ConstMemory input, Memory output);
  void carry_out(const Call& call, ConstMemory input, Memory output, Deadline deadline);
  void exchange(const std::vector<Message>& messages, Deadline deadline);
  template <class Act>
  void guard(std::string_view what, const Act& act);
  [[nodiscard]] Deadline deadline() const { return Deadline::after(options_.timeout); }

  std::shared_ptr<Link> link_;  // owners: this communicator and those split from it
  CommunicatorOptions options_;
  std::vector<int> members_;  // ranks of the transport
  int rank_;                  // among them
  int group_;
  std::vector<int> hosts_;  // of the members
  std::optional<CostModel> model_;
  Executor executor_;
  std::optional<SharedExecutor> shared_;
  uint32_t sequence_ = 0;
  std::vector<std::array<uint32_t, 2>> message_numbers_;  // by member: sent to it, received from it
  std::map<std::array<uint64_t, 4>, Plan> plans_;
  std::array<uint64_t, 4> last_key_{};
  const Plan* last_plan_ = nullptr;
  bool grouping_ = false;
  std::vector<Message> messages_;
  std::atomic<int> started_{0};  // calls that are not done
};

namespace {

// The members' hosts, numbered from 0 in order of appearance; empty if they have one.
std::vector<int> hosts_of(const Transport& transport, const std::vector<int>& members) {
  std::vector<int> numbers;
  std::map<int, int> known;
  if (transport.hosts().empty()) return {};
  for (const int member : members) {
    const int host = transport.hosts()[size_t(member)];
    numbers.push_back(known.emplace(host, int(known.size())).first->second);
  }
  return known.size() > 1 ? numbers : std::vector<int>{};
}

bool all_share(SharedSpace* space, const std::vector<int>& members) {
  if (space == nullptr || members.size() < 2) return false;
  const auto ranks = space->ranks();
  return std::all_of(members.begin(), members.end(), [&](int member) {
    return std::find(ranks.begin(), ranks.end(), member) != ranks.end();
  });
}

int place_of(int value, const std::vector<int>& values) {
  return int(std::find(values.begin(), values.end(), value) - values.begin());
}

}  // namespace

Communicator::Impl::Impl(std::shared_ptr<Link> link, const CommunicatorOptions& options,
                         std::vector<int> members, int group)
    : link_(std::move(link)),
      options_(options),
      members_(std::move(members)),
      rank_(place_of(link_->transport->rank(), members_)),
      group_(group),
      hosts_(hosts_of(*link_->transport, members_)),
      executor_(*link_->transport, link_->device, members_, rank_),
      message_numbers_(members_.size()) {
  SharedSpace* space = link_->transport->shared_space();
  if (all_share(space, members_)) {
    if (group_ < SharedSpace::kGroups) {
      shared_.emplace(*space, members_, rank_, group_);
    } else if (rank_ == 0) {
      log_warn(
          "communicator: more than {} groups; this one sends messages instead of sharing memory",
          SharedSpace::kGroups);
    }
  }
  model_.emplace(Topology{.world_size = world_size(),
                          .hosts = hosts_,
                          .transport = link_->transport->name(),
                          .shared_space = shared_.has_value()},
                 options_.profile);
}

Communicator::Impl::~Impl() {
  if (started_ == 0) return;
  link_->transport->abort("the communicator was destroyed before its calls were done");
  link_->queue.drain();
}

// ---- Calls

// On the caller's thread, before anything has begun.
void Communicator::Impl::check(const Call& call, ConstMemory input, ConstMemory output) const {
  const Extents extents = extents_of(call, rank_, world_size());
  const size_t element_bytes = size_of(call.dtype);
  GXP_ASSERT(input.bytes == extents.input.count * element_bytes);
  GXP_ASSERT(output.bytes == extents.output.count * element_bytes);
  GXP_ASSERT(!grouping_ && 0 <= call.root && call.root < world_size());
  const std::string_view name = to_string(call.collective);
  if (input.space != MemorySpace::kHost || output.space != MemorySpace::kHost) {
    fail(ErrorKind::kUnavailable, "{}: device memory is not supported; copy it to the host first",
         name);
  }
  if (reduces(call.collective)) {
    const Support support = supports(call.op, call.dtype);
    if (!support) fail(ErrorKind::kUsage, "{}: {}", name, support.reason);
  }
  if (call.collective == Collective::kAllToAll && call.count % size_t(world_size()) != 0) {
    fail(ErrorKind::kUsage, "{}: {} elements cannot be cut into {} equal chunks", name, call.count,
         world_size());
  }
}

void Communicator::Impl::run(const Call& call, ConstMemory input, Memory output) {
  check(call, input, output);
  link_->queue.drain();
  execute(call, input, output);
}

Pending Communicator::Impl::start(const Call& call, ConstMemory input, Memory output) {
  check(call, input, output);
  ++started_;
  return link_->queue.push([this, call, input, output] {
    const Done done{started_};
    execute(call, input, output);
  });
}

template <class Act>
void Communicator::Impl::guard(std::string_view what, const Act& act) {
  if (!link_->failure.empty()) {
    fail(ErrorKind::kPeer, "{}: not started, an earlier call failed: {}", what, link_->failure);
  }
  try {
    act();
  } catch (const Error& error) {
    link_->failure = fmt::format("{} at rank {}: {}", what, link_->transport->rank(), error.what());
    link_->transport->abort(link_->failure);
    throw Error(error.kind(), link_->failure);
  }
}

void Communicator::Impl::execute(Call call, ConstMemory input, Memory output) {
  call.sequence = sequence_++;
  if (link_->failure.empty()) {
    try {
      return carry_out(call, input, output, deadline());
    } catch (const Error& error) {
      guard(to_string(call), [&] { throw Error(error); });
    }
  }
  guard(to_string(call), [] {});
}

void Communicator::Impl::carry_out(const Call& call, ConstMemory input, Memory output,
                                   Deadline deadline) {
  const Plan& chosen = plan(call, true);
  if (shared_ && (chosen.algorithm->name == "direct" || call.collective == Collective::kBarrier)) {
    shared_->execute(call, input, output, deadline);
    const CallShape shape{.world_size = world_size(), .count = call.count, .root = call.root};
    link_->shared_bytes.fetch_add(
        chosen.algorithm->elements_sent(rank_, shape) * size_of(call.dtype),
        std::memory_order_relaxed);
    return;
  }
  executor_.execute(
      {.algorithm = chosen.algorithm,
       .call = call,
       .tag = tag_of(call, *chosen.algorithm, chosen.channels, chosen.segment_bytes, group_),
       .channels = chosen.channels,
       .segment_bytes = chosen.segment_bytes,
       .hosts = hosts_,
       .input = input,
       .output = output,
       .deadline = deadline});
}

const Plan& Communicator::Impl::plan(const Call& call, bool staged) {
  const size_t bytes = call.count * size_of(call.dtype);
  const std::array<uint64_t, 4> key = {uint64_t(call.collective), uint64_t(call.dtype), bytes,
                                       uint64_t{staged}};
  if (last_plan_ != nullptr && key == last_key_) return *last_plan_;
  auto found = plans_.find(key);
  if (found == plans_.end()) {
    const ChoiceSettings settings{.algorithm = options_.algorithm,
                                  .layout_invariant = options_.layout_invariant,
                                  .channels = options_.channels,
                                  .segment_bytes = options_.segment_bytes};
    found =
        plans_.emplace(key, choose(call.collective, call.dtype, bytes, settings, *model_, staged))
            .first;
  }
  last_key_ = key;
  last_plan_ = &found->second;
  return *last_plan_;
}

void Communicator::Impl::use(const ChoiceSettings& settings) {
  check_algorithm_name(settings.algorithm);
  link_->queue.drain();
  options_.algorithm = settings.algorithm;
  options_.layout_invariant = settings.layout_invariant;
  options_.channels = settings.channels;
  options_.segment_bytes = settings.segment_bytes;
  plans_.clear();
  last_plan_ = nullptr;
}

// ---- Messages

void Communicator::Impl::note_message(bool sends, int peer, ConstMemory data) {
  GXP_ASSERT(0 <= peer && peer < world_size() && peer != rank_);
  messages_.push_back({sends, peer, const_cast<std::byte*>(data.data), data.bytes});
  if (!grouping_) end_group();
}

void Communicator::Impl::begin_group() {
  GXP_ASSERT(!grouping_);
  grouping_ = true;
}

void Communicator::Impl::end_group() {
  grouping_ = false;
  link_->queue.drain();
  const auto messages = std::exchange(messages_, {});
  guard("send and receive", [&] { exchange(messages, deadline()); });
}

void Communicator::Impl::exchange(const std::vector<Message>& messages, Deadline deadline) {
  Transport& transport = *link_->transport;
  transport.on_unexpected({});
  std::vector<Ticket> tickets;
  for (const Message& message : messages) {
    const int peer = members_[size_t(message.peer)];
    uint32_t& number = message_numbers_[size_t(message.peer)][message.sends ? 0 : 1];
    const Tag tag = message_tag(number++, group_);
    const Memory memory{message.data, message.bytes, MemorySpace::kHost};
    tickets.push_back(message.sends ? transport.send(peer, tag, memory)
                                    : transport.recv(peer, tag, memory));
  }
  for (const Ticket ticket : tickets) transport.wait(ticket, deadline);
}

// ---- Groups and memory

std::unique_ptr<Communicator::Impl> Communicator::Impl::split(int color, int key) {
  const auto n = size_t(world_size());
  std::vector<std::array<int64_t, 3>> all(n);
  all[size_t(rank_)] = {color, key, link_->next_group};
  const Memory memory = memory_of(all);
  const Call call{.collective = Collective::kAllGather, .dtype = DType::kI64, .count = 3 * n};
  run(call, memory.slice(size_t(rank_) * sizeof all[0], sizeof all[0]), memory);
  int group = 0;
  for (const auto& entry : all) group = std::max(group, int(entry[2]));
  if (group >= kMaxGroups) {
    fail(ErrorKind::kUsage, "split a communicator: {} groups are the most that ranks can have",
         kMaxGroups);
  }
  link_->next_group = group + 1;
  if (color < 0) return nullptr;
  std::vector<int> members;
  for (size_t i = 0; i < n; ++i) {
    if (all[i][0] == color) members.push_back(int(i));
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](int a, int b) { return all[size_t(a)][1] < all[size_t(b)][1]; });
  for (int& member : members) member = members_[size_t(member)];
  return std::make_unique<Impl>(link_, options_, std::move(members), group);
}

CommunicatorMemory Communicator::Impl::allocate(size_t bytes) {
  if (SharedSpace* space = link_->transport->shared_space()) {
    return {space, space->allocate(bytes), {}};
  }
  Buffer buffer = link_->device.allocate(bytes, MemoryKind::kCommunication);
  const Memory memory = buffer.memory();
  return {nullptr, memory, std::move(buffer)};
}

CommunicatorMemory::CommunicatorMemory(SharedSpace* space, Memory memory, Buffer buffer)
    : space_(space), memory_(memory), buffer_(std::move(buffer)) {}
CommunicatorMemory::CommunicatorMemory(CommunicatorMemory&& other) noexcept
    : space_(std::exchange(other.space_, nullptr)),
      memory_(std::exchange(other.memory_, {})),
      buffer_(std::move(other.buffer_)) {}
CommunicatorMemory& CommunicatorMemory::operator=(CommunicatorMemory&& other) noexcept {
  std::swap(space_, other.space_);
  std::swap(memory_, other.memory_);
  std::swap(buffer_, other.buffer_);
  return *this;
}
CommunicatorMemory::~CommunicatorMemory() {
  if (space_ != nullptr) space_->release(memory_);
}

// ---- The face

namespace {

std::vector<int> everybody(int world_size) {
  std::vector<int> ranks(size_t(world_size), 0);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// A call in place: `data` is the whole logical buffer.
struct InPlace {
  Call call;
  ConstMemory input;
  Memory output;
};

InPlace in_place(const Communicator& comm, Call call, Memory data) {
  const size_t element_bytes = size_of(call.dtype);
  GXP_ASSERT(data.bytes % element_bytes == 0);
  call.count = data.bytes / element_bytes;
  const Extents extents = extents_of(call, comm.rank(), comm.world_size());
  const auto part = [&](Range range) {
    return data.slice(range.begin * element_bytes, range.count * element_bytes);
  };
  return {call, part(extents.input), part(extents.output)};
}

}  // namespace

Communicator::Communicator(std::unique_ptr<Transport> transport, Device& device,
                           const CommunicatorOptions& options) {
  check_algorithm_name(options.algorithm);
  const int world_size = transport->world_size();
  impl_ = std::make_unique<Impl>(std::make_shared<Link>(std::move(transport), device), options,
                                 everybody(world_size), 0);
}
Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

int Communicator::rank() const { return impl_->rank(); }
int Communicator::world_size() const { return impl_->world_size(); }
std::span<const int> Communicator::hosts() const { return impl_->hosts(); }
void Communicator::use(const ChoiceSettings& settings) { impl_->use(settings); }
std::string_view Communicator::transport_name() const { return impl_->link().transport->name(); }
WireCounters Communicator::counters() const {
  WireCounters counters = impl_->link().transport->counters();
  counters.bytes_sent += impl_->link().shared_bytes.load(std::memory_order_relaxed);
  return counters;
}
void Communicator::abort(std::string_view reason) noexcept {
  impl_->link().transport->abort(reason);
}

void Communicator::run(const Call& call, ConstMemory input, Memory output) {
  impl_->run(call, input, output);
}
Pending Communicator::start(const Call& call, ConstMemory input, Memory output) {
  return impl_->start(call, input, output);
}

void Communicator::all_reduce(Memory data, DType dtype, ReduceOp op) {
  const InPlace c =
      in_place(*this, {.collective = Collective::kAllReduce, .dtype = dtype, .op = op}, data);
  impl_->run(c.call, c.input, c.output);
}
Pending Communicator::start_all_reduce(Memory data, DType dtype, ReduceOp op) {
  const InPlace c =
      in_place(*this, {.collective = Collective::kAllReduce, .dtype = dtype, .op = op}, data);
  return impl_->start(c.call, c.input, c.output);
}
void Communicator::reduce_scatter(Memory data, DType dtype, ReduceOp op) {
  const InPlace c =
      in_place(*this, {.collective = Collective::kReduceScatter, .dtype = dtype, .op = op}, data);
  impl_->run(c.call, c.input, c.output);
}
Pending Communicator::start_reduce_scatter(Memory data, DType dtype, ReduceOp op) {
  const InPlace c =
      in_place(*this, {.collective = Collective::kReduceScatter, .dtype = dtype, .op = op}, data);
  return impl_->start(c.call, c.input, c.output);
}
void Communicator::all_gather(Memory data, DType dtype) {
  const InPlace c = in_place(*this, {.collective = Collective::kAllGather, .dtype = dtype}, data);
  impl_->run(c.call, c.input, c.output);
}
Pending Communicator::start_all_gather(Memory data, DType dtype) {
  const InPlace c = in_place(*this, {.collective = Collective::kAllGather, .dtype = dtype}, data);
  return impl_->start(c.call, c.input, c.output);
}
void Communicator::broadcast(Memory data, int root) {
  const InPlace c = in_place(*this, {.collective = Collective::kBroadcast, .root = root}, data);
  impl_->run(c.call, c.input, c.output);
}
Pending Communicator::start_broadcast(Memory data, int root) {
  const InPlace c = in_place(*this, {.collective = Collective::kBroadcast, .root = root}, data);
  return impl_->start(c.call, c.input, c.output);
}
void Communicator::barrier() { impl_->run({}, {}, {}); }

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

CommunicatorMemory Communicator::allocate(size_t bytes) { return impl_->allocate(bytes); }
Plan Communicator::plan(const Call& call, bool staged) const { return impl_->plan(call, staged); }

}  // namespace gxp
