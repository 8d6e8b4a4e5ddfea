// The layout of a flight record; flight_record.h explains it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gxp::flight {

inline constexpr uint64_t kMagic = 0x0000'594c'4650'5847;  // "GXPFLY"
inline constexpr uint32_t kVersion = 3;
inline constexpr size_t kMaxCapacity = 65536;

enum Header : size_t {
  kMagicAt = 0,
  kVersionAt = 1,
  kRankAt = 2,
  kProcessAt = 3,
  kWallAt = 4,
  kMonotonicAt = 5,
  kNameCountAt = 6,
  kTakenAt = 7,
  kHostAt = 8,
  kNamesAt = 16,
  kGroupsAt = 64,
  kActivityAt = 576,
  kStepAt = 577,
  kSinceAt = 578,
  kDataAt = 579,
  kHostNameAt = 580,
  kHostPeakAt = 588,
  kDevicePeakAt = 589,
  kRingAt = 590,
};
inline constexpr size_t kHostWords = 8;  // of the identity, and of the name
inline constexpr size_t kNames = 16;
inline constexpr size_t kNameWords = 3;
inline constexpr size_t kGroups = 256;

enum Entry : size_t {
  kStamp = 0,
  kEntered = 1,
  kLeft = 2,
  kProgress = 3,
  kCount = 4,
  kSequence = 5,
  kWhat = 6,
  kLeader = 7,
  kEntryWords = 8,
};
inline constexpr uint64_t kExact = 1;                   // of kEntered and kLeft
inline constexpr uint64_t kFailed = uint64_t{1} << 63;  // of kLeft
inline constexpr uint64_t kAtOnce = 2;                  // as kLeft
inline constexpr uint8_t kPeerCalls = 64;               // what: the first of them
inline constexpr uint8_t kNoName = 255;

constexpr size_t words_of(size_t capacity) { return kRingAt + kEntryWords * capacity; }
constexpr uint64_t join(uint32_t low, uint32_t high) { return low | uint64_t{high} << 32; }
constexpr uint32_t low(uint64_t word) { return uint32_t(word); }
constexpr uint32_t high(uint64_t word) { return uint32_t(word >> 32); }

using Words = std::vector<uint64_t>;

// One consistent copy of three that were taken one after the other while the rank went on: an entry
// of `middle` whose stamp was another before or after becomes empty. Equal sizes.
std::string settle(const Words& before, Words middle, const Words& after);

}  // namespace gxp::flight
