// How the ranks of a group find out whether their devices reach each other's memory.
#include <algorithm>
#include <set>
#include <utility>

#include "lib/collective/engine/native/native_engine.h"
#include "lib/net/store/facts.h"

namespace gxp {

bool NativeEngine::supports_memory(MemorySpace space) const {
  if (space == MemorySpace::kHost) return true;
  if (state_->device_peers == nullptr) return false;
  const auto& ranks = state_->device_ranks;
  return world_size() == 1 || (on_device_ && std::ranges::all_of(members_, [&](int member) {
                                 return std::ranges::find(ranks, member) != ranks.end();
                               }));
}

void NativeEngine::leave_device() noexcept { use_device(nullptr); }

void NativeEngine::use_device(std::unique_ptr<DevicePeers> peers) noexcept {
  const std::lock_guard lock(state_->peers_mutex);
  state_->device_peers = std::move(peers);
  state_->device_ranks.clear();
  state_->own_devices = false;
  state_->queues_on = nullptr;
}

bool NativeEngine::queues_calls() const {
  return on_device_ && state_->own_devices && supports_memory(MemorySpace::kCuda);
}

std::unique_ptr<QueuedCall> NativeEngine::enqueue(const Call& call, ConstMemory input,
                                                  Memory output, Stream& stream,
                                                  Deadline deadline) {
  if (state_->queues_on != nullptr && state_->queues_on != &stream)
    fail(ErrorKind::kUsage, "queue {}: engine native queues all calls on one stream",
         to_string(call));
  state_->queues_on = &stream;
  return on_device_->enqueue(*state_->device_peers, call, input, output, stream, deadline);
}

// Two exchanges: what each rank knows of its own device and can tell of those of its host; then,
// where nothing is in the way, whether it has read what they have written.
Support NativeEngine::join_device(const FoldingDevice& device, uint32_t sequence,
                                  Deadline deadline) {
  leave_device();
  if (world_size() == 1) {
    use_device(std::make_unique<DevicePeers>(device));
    return {};
  }
  DeviceSharing* const sharing = device.device.sharing();
  Support verdict = can_share(device);
  const auto identities =
      share_texts(sharing == nullptr ? "" : sharing->identity(), sequence, deadline);
  DevicePeers::Members here;
  if (verdict) here = members_here(identities);
  for (size_t i = 0; i < members_.size(); ++i)
    if (verdict && int(i) != rank_ && here.contains(members_[i]))
      verdict = sharing->reaches(identities[i]);
  auto verdicts = share_verdicts(verdict, sequence, deadline);
  if (std::ranges::all_of(verdicts, &Support::ok)) {
    use_device(std::make_unique<DevicePeers>(device, *state_->transport->shared_arena(),
                                             std::move(here), state_->transport->rank()));
    verdicts = share_verdicts(state_->device_peers->handshake(deadline), sequence, deadline);
  }
  // One that is not reached may have been noticed by one of its peers alone.
  const auto refused = std::ranges::find(verdicts, false, &Support::ok);
  if (refused != verdicts.end()) {
    leave_device();
    return {false, fmt::format("rank {}: {}", refused - verdicts.begin(), refused->reason)};
  }
  state_->device_ranks = members_;
  // A barrier with its peers occupies it.
  state_->own_devices = std::set(identities.begin(), identities.end()).size() == identities.size();
  if (supports_memory(MemorySpace::kCuda)) return {};
  return {false, "the ranks are on several hosts"};
}

// `identities`: of all members' devices.
DevicePeers::Members NativeEngine::members_here(const std::vector<std::string>& identities) const {
  const auto ranks = state_->transport->shared_arena()->ranks();
  DevicePeers::Members here;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (std::ranges::find(ranks, members_[i]) != ranks.end())
      here.emplace(members_[i], identities[i]);
  }
  return here;
}

Support NativeEngine::can_share(const FoldingDevice& device) const {
  const SharedArena* const arena = state_->transport->shared_arena();
  if (arena == nullptr || arena->ranks().size() < 2)
    return {false, fmt::format("ranks over transport {} share no memory with it",
                               state_->transport->name())};
  if (arena->ranks().size() > DeviceFolds::kMostSources)
    return {false, fmt::format("more than {} ranks are on its host", DeviceFolds::kMostSources)};
  if (device.device.sharing() == nullptr)
    return {false, fmt::format("{} shares no memory", device.device.description())};
  return device.device.sharing()->support();
}

std::vector<std::string> NativeEngine::share_texts(const std::string& mine, uint32_t sequence,
                                                   Deadline deadline) {
  return gather_texts(rank_, world_size(), mine, run_as(sequence, deadline));
}

std::vector<Support> NativeEngine::share_verdicts(const Support& mine, uint32_t sequence,
                                                  Deadline deadline) {
  return exchange_facts(
      mine, [&](const std::string& text) { return share_texts(text, sequence, deadline); });
}

}  // namespace gxp
