// The capacities of a link's queues. Receivers grant what may be on its way to them, so that these
// bounds are kept without looking.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gxp {

// Short messages and announcements that the peer has not taken yet.
inline constexpr int kMessageCredits = 16;
// Places for data that a receiver has granted at a time; as many it gives before they are asked
// for as leave some for messages that the peer is sending already.
inline constexpr size_t kGrants = 8;
inline constexpr size_t kEarlyGrants = 4;
// Headers that only give credits back, and the last one.
inline constexpr int kSpareMessages = 8;

// What a receive queue of the first lane holds: messages, the peer's grants, ends of data.
inline constexpr int kReceiveSlots = kMessageCredits + 2 * int(kGrants) + kSpareMessages;
// What a send queue holds: messages of all kinds in slots, and writes.
inline constexpr int kSendSlots = kMessageCredits + int(kGrants) + kSpareMessages;
inline constexpr int kWriteEntries = 16;
inline constexpr int kQueueEntries = kSendSlots + kWriteEntries + 1;  // one for the last word
static_assert(kReceiveSlots <= kQueueEntries);

// Slots are smaller where there are many peers: 0.6 MiB a peer, or 0.15 MiB.
inline constexpr size_t kSlotBytes = 8192;
inline constexpr size_t kSmallSlotBytes = 2048;
inline constexpr size_t kFewPeers = 16;

// One request writes at most so much (the limit of Soft-RoCE is 8 MiB).
inline constexpr size_t kMostPerWrite = size_t{1} << 20;
// Data are cut over so many lanes that each has at least this.
inline constexpr size_t kLeastPerLane = size_t{64} << 10;
// Where data to be combined arrive: so many places of so many bytes a peer.
inline constexpr size_t kTiles = 4;
inline constexpr size_t kTileBytes = size_t{256} << 10;

// The first value of every counter of 32 bits or fewer, so that each run passes the point where it
// wraps.
inline constexpr uint32_t kFirstNumber = 0xfffffff0;

}  // namespace gxp
