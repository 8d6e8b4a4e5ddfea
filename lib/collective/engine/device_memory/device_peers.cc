#include "lib/collective/engine/device_memory/device_peers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "lib/base/error.h"

namespace gxp {
namespace {

Memory memory_of_word(uint64_t& word) {
  return {reinterpret_cast<std::byte*>(&word), sizeof word, MemorySpace::kHost};
}

// Of one group in a rank's shared memory.
struct GroupBoard {
  BarrierBoard board;
  alignas(64) BarrierState state;
};
static_assert(DevicePeers::kScratchBytes + SharedArena::kGroups * sizeof(GroupBoard) <=
              DevicePeers::kSharedBytes);

}  // namespace

// What travels with a descriptor, or without.
struct DevicePeers::Offer {
  uint64_t allocation = 0;  // 0: there is none, since something has failed
  uint64_t bytes = 0;       // 0: it was freed
  uint64_t mark = 0;        // what the first bytes of scratch memory hold
};

DevicePeers::DevicePeers(const FoldingDevice& device)
    : device_(device), stream_(device.device.make_urgent_stream("device-collective")) {
  static std::atomic<uint64_t> objects = 0;
  number_ = ++objects;
}

DevicePeers::DevicePeers(const FoldingDevice& device, SharedArena& arena, Members members, int rank)
    : DevicePeers(device) {
  controls_ = device.device.allocate_host(SharedArena::kGroups * sizeof(BarrierControl));
  arena_ = &arena;
  members_ = std::move(members);
  rank_ = rank;
  const auto ranks = size_t(*std::ranges::max_element(arena.ranks())) + 1;
  scratch_of_.resize(ranks);
  offered_.resize(ranks);
  mapped_.resize(ranks);
}

Support DevicePeers::handshake(Deadline deadline) {
  Support verdict = prepare_scratch();
  offer_scratch(verdict.ok, deadline);
  for (const auto& [peer, identity] : members_) {
    if (peer == rank_) continue;
    const Support found = check_scratch(peer, deadline);
    if (verdict && !found) verdict = found;
  }
  return verdict;
}

Support DevicePeers::prepare_scratch() {
  try {
    shared_ = device_.device.allocate_shareable(kSharedBytes, MemoryKind::kCommunication);
  } catch (const Error& error) {
    return {false, error.what()};
  }
  scratch_of_[size_t(rank_)] = shared_.memory().data;
  return sharing().support();
}

// Peers wait for an offer, so they get one whatever has failed.
void DevicePeers::offer_scratch(bool exists, Deadline deadline) {
  Offer offer;
  SharedAllocation shared;
  if (exists) {
    offer.allocation = place_of(shared_.memory().data, kSharedBytes).allocation;
    offer.mark = uint64_t(std::chrono::steady_clock::now().time_since_epoch().count());
    device_.device.copy(shared_.memory().slice(0, sizeof offer.mark), memory_of_word(offer.mark));
    try {
      shared = sharing().share(offer.allocation);
      offer.bytes = shared.bytes;
    } catch (const Error&) {
      offer = {};  // the peers' verdicts tell
    }
  }
  for (const auto& [peer, identity] : members_) {
    if (peer == rank_) continue;
    send(peer, offer, shared.fd.get(), deadline);
    if (offer.allocation != 0) offered_[size_t(peer)].insert(offer.allocation);
  }
}

Support DevicePeers::check_scratch(int peer, Deadline deadline) {
  Offer offer;
  try {
    offer = take(peer, deadline);
    if (offer.allocation == 0)
      return {false, fmt::format("rank {} cannot share its GPU's memory", peer)};
    const Memory theirs = mapped_[size_t(peer)].at(offer.allocation).memory();
    uint64_t found = 0;
    device_.device.copy(memory_of_word(found), theirs.slice(0, sizeof found));
    scratch_of_[size_t(peer)] = theirs.data;
    if (theirs.bytes >= kSharedBytes && found == offer.mark) return {};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kDevice) throw;
    return {false, fmt::format("reach the memory of rank {}'s GPU: {}", peer, error.what())};
  }
  return {false, fmt::format("this GPU does not read what rank {}'s GPU wrote: peer access fails "
                             "(is an IOMMU or PCIe ACS on?)",
                             peer)};
}

BarrierBoard* DevicePeers::board(int rank, int group) const {
  return &reinterpret_cast<GroupBoard*>(scratch(rank) + kScratchBytes)[group].board;
}

BarrierState* DevicePeers::barrier_state(int group) const {
  return &reinterpret_cast<GroupBoard*>(scratch(rank_) + kScratchBytes)[group].state;
}

BarrierControl* DevicePeers::barrier_control(int group) {
  return &reinterpret_cast<BarrierControl*>(controls_.memory().data)[group];
}

void DevicePeers::clear_barriers(int group) {
  GroupBoard zeroes{};
  const size_t at = kScratchBytes + size_t(group) * sizeof zeroes;
  device_.device.copy(shared_.memory().slice(at, sizeof zeroes),
                      {reinterpret_cast<std::byte*>(&zeroes), sizeof zeroes, MemorySpace::kHost});
  *barrier_control(group) = {};
}

void DevicePeers::end_barriers() noexcept {
  if (controls_.memory().data == nullptr) return;  // a rank that is alone
  for (int group = 0; group < SharedArena::kGroups; ++group)
    std::atomic_ref(barrier_control(group)->aborted).store(1, std::memory_order_release);
}

AllocationOffset DevicePeers::place_of(const std::byte* data, size_t bytes) const {
  return sharing().find({data, bytes, MemorySpace::kCuda});
}

void DevicePeers::offer(uint64_t allocation, std::span<const int> ranks, Deadline deadline) {
  SharedAllocation shared;
  for (const int rank : ranks) {
    if (rank == rank_ || !offered_[size_t(rank)].insert(allocation).second) continue;
    if (!shared.fd.valid()) shared = sharing().share(allocation);
    tell_freed(rank, deadline);
    send(rank, {.allocation = allocation, .bytes = shared.bytes}, shared.fd.get(), deadline);
  }
}

void DevicePeers::tell_freed(int rank, Deadline deadline) {
  std::erase_if(offered_[size_t(rank)], [&](uint64_t allocation) {
    const bool freed = !sharing().is_live(allocation);
    if (freed) send(rank, {.allocation = allocation}, -1, deadline);
    return freed;
  });
}

void DevicePeers::send(int rank, const Offer& offer, int fd, Deadline deadline) {
  arena_->channels().send(rank, std::as_bytes(std::span(&offer, 1)), fd, deadline);
}

DevicePeers::Offer DevicePeers::take(int rank, Deadline deadline) {
  Offer offer;
  Mapped& mapped = mapped_[size_t(rank)];
  SharedAllocation theirs;
  theirs.fd =
      arena_->channels().receive(rank, std::as_writable_bytes(std::span(&offer, 1)), deadline);
  theirs.bytes = offer.bytes;
  if (offer.allocation != 0 && offer.bytes == 0) {
    mapped.erase(offer.allocation);
  } else if (offer.allocation != 0) {
    if (!theirs.fd.valid())
      fail(ErrorKind::kPeer, "map memory of rank {}'s GPU: its offer has no descriptor", rank);
    mapped.insert_or_assign(offer.allocation, PeerMemory(sharing(), theirs));
  }
  return offer;
}

void DevicePeers::learn(int rank, uint64_t allocation, Deadline deadline) {
  while (!mapped_[size_t(rank)].contains(allocation)) take(rank, deadline);
}

std::byte* DevicePeers::at(int rank, const AllocationOffset& place, size_t bytes) const {
  const Memory theirs = mapped_[size_t(rank)].at(place.allocation).memory();
  if (place.offset > theirs.bytes || bytes > theirs.bytes - place.offset)
    fail(ErrorKind::kPeer,
         "access memory of rank {}'s GPU: {} bytes at {} are outside of the {} that it shares",
         rank, bytes, place.offset, theirs.bytes);
  return theirs.data + place.offset;
}

}  // namespace gxp
