// How a server that anybody can connect to keeps places for those it waits for.
//
// A stranger is a client that has not proved who it is. There are 64 at most. A further one takes
// the place of the oldest stranger that has sent nothing for 20 ms, since a client's first bytes
// follow its connection at once; else of the oldest that has not finished within 100 ms, since a
// handshake takes one and a half round trips. A client over a slow link that loses its place tries
// again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "lib/base/deadline.h"

namespace gxp {

inline constexpr std::ptrdiff_t kMostStrangers = 64;
inline constexpr std::chrono::milliseconds kSilentTime{20};
inline constexpr std::chrono::milliseconds kBusyTime{100};

// If all places are taken, calls `drop` for the client whose place a newcomer takes. False: no
// place is free yet. `clients`: the oldest first; silent() tells whether a client has sent nothing,
// since() when it connected.
template <class Clients, class IsStranger, class Drop>
bool make_room_for_stranger(Clients& clients, const IsStranger& is_stranger, const Drop& drop) {
  if (std::ranges::count_if(clients, is_stranger) < kMostStrangers) return true;
  const auto now = Deadline::Clock::now();
  const auto find = [&](bool silent, Deadline::Duration time) {
    return std::ranges::find_if(clients, [&](const auto& client) {
      return is_stranger(client) && (client.silent() || !silent) && now - client.since() > time;
    });
  };
  auto oldest = find(true, kSilentTime);
  if (oldest == clients.end()) oldest = find(false, kBusyTime);
  if (oldest == clients.end()) return false;
  drop(oldest);
  return true;
}

}  // namespace gxp
