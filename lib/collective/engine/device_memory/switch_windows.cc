#include "lib/collective/engine/device_memory/switch_windows.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace gxp {
namespace {

// What the driver refuses is a reason, not a failure of the job.
template <class Act>
Support attempt(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kDevice) throw;
    return {false, error.what()};
  }
  return {};
}

}  // namespace

// The ranks agree before each step that needs all of them: to make an object; to bind, which waits
// for GPUs that have not joined, without a limit; to use it.
Support SwitchWindows::add(DevicePeers& peers, std::span<const int> members, size_t rank,
                           Memory memory, const Agree& agree, Deadline deadline) {
  const uint32_t number = ++added_;
  DeviceSharing& sharing = peers.sharing();
  const auto place = peers.place_of(memory.data, memory.bytes);
  Support mine = sharing.multicast_support();
  if (mine && (place.allocation == 0 || place.offset != 0))
    mine = {false, "its memory is no allocation that peers map"};
  if (Support all = agree(mine); !all) return all;

  std::unique_ptr<DeviceMulticast> multicast;
  if (rank == 0) {
    SharedAllocation made;
    mine = attempt([&] {
      multicast = sharing.make_multicast(place.allocation, int(members.size()));
      made = multicast->share();
    });
    for (const int peer : members.subspan(1)) peers.give(peer, made, deadline);
  } else {
    const SharedAllocation made = peers.take_given(members[0], deadline);
    if (made.fd.valid())
      mine = attempt([&] { multicast = sharing.join_multicast(made, place.allocation); });
  }
  if (Support all = agree(mine); !all) return all;

  std::byte* addresses = nullptr;
  mine = attempt([&] { addresses = multicast->bind(); });
  if (Support all = agree(mine); !all) return all;
  windows_.push_back({number, memory, std::move(multicast), addresses});
  return {};
}

void SwitchWindows::remove(const std::byte* data) noexcept {
  std::erase_if(windows_, [&](const Window& window) { return window.memory.data == data; });
}

uint32_t SwitchWindows::find(ConstMemory memory) const {
  for (const Window& window : windows_) {
    const Memory& all = window.memory;
    if (all.data <= memory.data && memory.data + memory.bytes <= all.data + all.bytes)
      return window.number;
  }
  return 0;
}

std::byte* SwitchWindows::at(uint32_t window, uint64_t offset) const {
  const auto found = std::ranges::find(windows_, window, &Window::number);
  GXP_ASSERT(found != windows_.end());
  return found->addresses + offset;
}

}  // namespace gxp
