// How a server that anybody can connect to keeps places for those it waits for.
//
// A stranger is a client that has not proved who it is. There are 64 at most. One more takes the place
// of the oldest that has sent nothing for 20 ms, as a client's first bytes follow its connection at
// once, else of the oldest that has not finished within 100 ms, though a handshake takes one round
// trip and a half. A client on a slow way that loses its place tries again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "lib/base/deadline.h"

namespace gxp {

inline constexpr std::ptrdiff_t kMostStrangers = 64;
inline constexpr std::chrono::milliseconds kSilentTime{20};
inline constexpr std::chrono::milliseconds kBusyTime{100};

// Calls `drop` for the client whose place a newcomer takes, if all are taken. False: none is free yet.
// `clients`: the oldest first, with silent(), whether nothing has come, and since().
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
