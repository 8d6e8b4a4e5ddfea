#include "lib/collective/engine/native/native_engine.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lib/base/log.h"
#include "lib/collective/algorithm/schedule.h"
#include "lib/collective/engine/shared_memory/startup_benchmark.h"
#include "lib/transport/arena/shared_arena.h"
#include "lib/transport/context.h"

namespace gxp {
namespace {

std::vector<int> everybody(int world_size) {
  std::vector<int> ranks(size_t(world_size), 0);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// The members' hosts, as number_hosts() numbers them.
std::vector<int> hosts_of(const Transport& transport, const std::vector<int>& members) {
  if (transport.hosts().empty()) return {};
  std::vector<int> hosts;
  for (const int member : members) hosts.push_back(transport.hosts()[size_t(member)]);
  return number_hosts(hosts);
}

bool all_share(SharedArena* arena, const std::vector<int>& members) {
  if (arena == nullptr || members.size() < 2) return false;
  const auto ranks = arena->ranks();
  return std::all_of(members.begin(), members.end(), [&](int member) {
    return std::find(ranks.begin(), ranks.end(), member) != ranks.end();
  });
}

int place_of(int value, const std::vector<int>& values) {
  return int(std::find(values.begin(), values.end(), value) - values.begin());
}

}  // namespace

NativeEngine::EngineState::EngineState(std::unique_ptr<Transport> transport_in, Device& device_in,
                                       Profile profile_in, FlightRecorder* recorder_in)
    : transport(std::move(transport_in)),
      device(device_in),
      profile(std::make_shared<Profile>(std::move(profile_in))),
      recorder(recorder_in != nullptr
                   ? *recorder_in
                   : own_recorder.emplace(transport->rank(), transport->world_size())) {}

NativeEngine::NativeEngine(std::unique_ptr<Transport> transport, Device& device,
                           const SelectionSettings& settings, const Profile& profile,
                           FlightRecorder* recorder, RankPlan plan)
    : NativeEngine(std::make_shared<EngineState>(std::move(transport), device, profile, recorder),
                   settings, {}, 0, std::move(plan), {}) {}

NativeEngine::NativeEngine(std::shared_ptr<EngineState> state, const SelectionSettings& settings,
                           std::vector<int> members, int group, RankPlan rank_plan, Costs costs)
    : state_(std::move(state)),
      settings_(settings),
      members_(members.empty() ? everybody(state_->transport->world_size()) : std::move(members)),
      rank_(place_of(state_->transport->rank(), members_)),
      group_(group),
      hosts_(hosts_of(*state_->transport, members_)),
      rank_plan_(std::move(rank_plan)),
      costs_(std::move(costs)),
      executor_(*state_->transport, state_->device, state_->recorder, members_, rank_),
      message_numbers_(members_.size()) {
  state_->recorder.define_group(uint8_t(group_), members_.front(), int(members_.size()));
  SharedArena* arena = state_->transport->shared_arena();
  if (all_share(arena, members_)) {
    if (group_ < SharedArena::kGroups) {
      shared_.emplace(*arena, state_->recorder, members_, rank_, group_);
      on_device_.emplace(shared_->sync());
    } else if (rank_ == 0) {
      log_warn(
          "communicator: more than {} groups; this one sends messages instead of sharing memory",
          SharedArena::kGroups);
    }
  }
  if (costs_.profile == nullptr) costs_.profile = state_->profile;
  if (shared_) {
    shared_->use_tiles_of(costs_.tile_bytes);
    limits_ = {.ranks = world_size(), .cma = costs_.cma, .oversubscribed = arena->oversubscribed()};
  }
  set_selection(settings);
  make_model();
}

void NativeEngine::make_model() {
  model_.emplace(GroupTopology{.world_size = world_size(),
                               .hosts = hosts_,
                               .transport = state_->transport->name(),
                               .shared_arena = shared_.has_value(),
                               .orders = orders_of(rank_plan_)},
                 *costs_.profile);
}

void NativeEngine::tune(Deadline deadline) {
  costs_.measures = true;
  if (!shared_ || costs_.tuned) return;
  const std::string_view transport = state_->transport->name();
  const Profile& known = *costs_.profile;
  const bool calibrated =
      messages_compete(known, transport, world_size()) && known.machine.cpu == this_machine().cpu;
  FlightRecorder unseen(state_->recorder.rank(), state_->transport->world_size());
  shared_->report_to(unseen);
  StartupBenchmark done = benchmark_startup(*shared_, *state_->transport->shared_arena(),
                                            calibrated ? 0 : kStartupBenchmarkSeconds, deadline);
  shared_->report_to(state_->recorder);
  done.methods.transport = std::string(transport);
  const LinkClass& methods =
      calibrated ? *find_methods(known, transport, world_size()) : done.methods;
  costs_ = {.profile = methods.curves.empty()
                           ? costs_.profile
                           : std::make_shared<Profile>(with_methods(known, methods, done.cma)),
            .measures = true,
            .tuned = true,
            .cma = done.cma,
            .tile_bytes = done.tile_bytes};
  limits_.cma = done.cma;
  make_model();
  set_selection(settings_);
  if (rank_ == 0 && !calibrated)
    log_info("{} ranks share memory; all-reduce measured in {:.1f} ms: {}", world_size(),
             done.seconds * 1e3, summary(done));
}

std::string_view NativeEngine::transport_name() const { return state_->transport->name(); }

// Written by one thread at a time; an atomic add is a fence.
void NativeEngine::count_shared(uint64_t bytes) {
  auto& all = state_->shared_bytes;
  all.store(all.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
}

void NativeEngine::execute_on_device(const Call& call, ConstMemory input, Memory output,
                                     Deadline deadline) {
  if (is_host_memory(input) || is_host_memory(output))
    fail(ErrorKind::kUsage, "{}: one of its buffers is in device memory, the other is not",
         to_string(call));
  GXP_ASSERT(supports_memory(MemorySpace::kCuda));
  if (!on_device_) return execute_alone(*state_->device_peers, call, input, output, deadline);
  on_device_->execute(*state_->device_peers, call, input, output, deadline);
  AlgorithmPlan direct;
  direct.algorithm = find_shared_algorithm(call.collective);
  const CallShape shape = shape_of(call, direct, model_->topology());
  count_shared(elements_sent(*direct.algorithm, rank_, shape) * size_of(call.dtype));
}

void NativeEngine::execute(const Call& call, ConstMemory input, Memory output, Deadline deadline) {
  if (input.space != MemorySpace::kHost || output.space != MemorySpace::kHost)
    return execute_on_device(call, input, output, deadline);
  if (shared_ && call.collective == Collective::kBarrier) {
    shared_->execute(call, input, output, deadline, {});  // has one method, and shares no bytes
    return;
  }
  const CachedPlans& plans = plans_for(call);
  if (shared_ && shared_->execute(call, input, output, deadline, plans.methods))
    return count_shared(plans.shared_bytes);
  const AlgorithmPlan& chosen = plans.ordinary->plan;
  state_->recorder.enter(call, chosen.algorithm->name, uint8_t(group_), Deadline::Clock::now());
  executor_.execute(
      {.algorithm = chosen.algorithm,
       .call = call,
       .tag = tag_of(call, *chosen.algorithm, chosen.channels, chosen.segment_bytes, group_),
       .shape = shape_of(call, chosen, model_->topology()),
       .segment_bytes = chosen.segment_bytes,
       .input = input,
       .output = output,
       .deadline = deadline});
  state_->recorder.done();
}

const NativeEngine::CachedPlans& NativeEngine::plans_for(const Call& call) {
  if (same_signature(last_.call, call)) return last_;
  last_ = {.call = call,
           .ordinary = &plan_for(call, MemoryOrigin::kOrdinary),
           .communicator = &plan_for(call, MemoryOrigin::kCommunicator)};
  last_.methods = {.communicator = last_.communicator->plan.method,
                   .ordinary = last_.ordinary->plan.method,
                   .cma = limits_.cma,
                   .open = !limits_.wanted};
  const bool shares_ordinary = last_.methods.ordinary != SharedMethod::kMessages;
  last_.shared_bytes = (shares_ordinary ? last_.ordinary : last_.communicator)->bytes_sent;
  return last_;
}

const NativeEngine::CachedPlan& NativeEngine::plan_for(const Call& call, MemoryOrigin origin) {
  const std::array<uint64_t, 5> key = {uint64_t(call.collective), uint64_t(call.dtype),
                                       call.bytes(), uint64_t(call.root), uint64_t(origin)};
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  AlgorithmPlan plan = select_with_sharing(call, settings_, *model_, limits_, origin);
  const CallShape shape = shape_of(call, plan, model_->topology());
  const uint64_t sent = elements_sent(*plan.algorithm, rank_, shape) * size_of(call.dtype);
  return plans_.emplace(key, CachedPlan{std::move(plan), sent}).first->second;
}

void NativeEngine::set_selection(const SelectionSettings& settings) {
  check_algorithm_name(settings.algorithm);
  settings_ = settings;
  limits_.wanted = wanted_method(settings);
  plans_.clear();
  last_ = {};
}

void NativeEngine::exchange(std::span<const PeerMessage> messages, Deadline deadline) {
  Transport& transport = *state_->transport;
  transport.on_unexpected({});
  state_->recorder.enter(describe(messages), uint8_t(group_), Deadline::Clock::now());
  std::vector<Ticket> tickets;
  for (const PeerMessage& message : messages) {
    const int peer = members_[size_t(message.peer)];
    uint32_t& number = message_numbers_[size_t(message.peer)][message.sends ? 0 : 1];
    const Tag tag = message_tag(number++, group_);
    tickets.push_back(message.sends ? transport.send(peer, tag, message.data)
                                    : transport.recv(peer, tag, message.data));
  }
  for (size_t i = 0; i < tickets.size(); ++i) {
    state_->recorder.step(int(i), members_[size_t(messages[i].peer)]);
    transport.wait(tickets[i], deadline);
  }
  state_->recorder.done();
}

// For the recorder.
PeerCall NativeEngine::describe(std::span<const PeerMessage> messages) {
  using enum PeerCall::Kind;
  PeerCall call{.kind = kMessages, .count = messages.size(), .sequence = state_->exchanges++};
  if (messages.size() > 2) return call;
  for (const PeerMessage& message : messages) {
    int& peer = message.sends ? call.to : call.from;
    if (peer >= 0) return {.kind = kMessages, .count = messages.size(), .sequence = call.sequence};
    peer = members_[size_t(message.peer)];
    call.count = message.data.bytes;
  }
  if (messages.size() == 2) call.kind = kExchange;
  if (messages.size() == 1) call.kind = call.to >= 0 ? kSend : kReceive;
  return call;
}

RunCall NativeEngine::run_as(uint32_t sequence, Deadline deadline) {
  return [this, sequence, deadline](Call call, ConstMemory input, Memory output) {
    call.sequence = sequence;
    execute(call, input, output, deadline);
  };
}

std::unique_ptr<Engine> NativeEngine::split(int color, int key, uint32_t sequence,
                                            Deadline deadline) {
  const auto requests =
      gather_values(rank_, world_size(), SplitRequest{color, key, state_->next_group},
                    run_as(sequence, deadline));
  int64_t group = 0;
  for (const SplitRequest& request : requests) group = std::max(group, request.next_group);
  if (group >= kMaxGroups) {
    fail(ErrorKind::kUsage, "split a communicator: ranks can have at most {} groups", kMaxGroups);
  }
  state_->next_group = int(group) + 1;
  if (color < 0) return nullptr;
  std::vector<int> members = ranks_of_color(color, requests);
  RankPlan rank_plan = plan_of_members(rank_plan_, members);
  for (int& member : members) member = members_[size_t(member)];
  std::unique_ptr<NativeEngine> part(new NativeEngine(state_, settings_, std::move(members),
                                                      int(group), std::move(rank_plan), costs_));
  if (costs_.measures) part->tune(deadline);
  return part;
}

CommunicatorMemory NativeEngine::allocate(size_t bytes) {
  SharedArena* const arena = state_->transport->shared_arena();
  CommunicatorMemory memory =
      arena != nullptr
          ? CommunicatorMemory(*arena, bytes)
          : CommunicatorMemory(state_->device.allocate(bytes, MemoryKind::kCommunication));
  memory.keep_with(*state_->transport);
  return memory;
}

WireCounters NativeEngine::counters() const {
  WireCounters counters = state_->transport->counters();
  counters.bytes_sent += state_->shared_bytes.load(std::memory_order_relaxed);
  return counters;
}

uint64_t NativeEngine::bytes_sent_between_hosts() const {
  const Transport& transport = *state_->transport;
  const auto hosts = transport.hosts();
  uint64_t bytes = 0;
  for (size_t peer = 0; peer < hosts.size(); ++peer) {
    if (hosts[peer] != hosts[size_t(transport.rank())]) bytes += transport.bytes_sent_to(int(peer));
  }
  return bytes;
}

void NativeEngine::abort(std::string_view reason) noexcept {
  state_->transport->abort(reason);
  const std::lock_guard lock(state_->peers_mutex);
  if (state_->device_peers != nullptr) state_->device_peers->end_barriers();
}

}  // namespace gxp
