// What ranks of one host signal to each other in shared memory, and the slots in which they leave
// data. Each is written by its owner only; the collectives define its content
// (collective/engine/shared_memory/group_sync.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gxp {

// What one rank publishes at its entry to a call: a word that names the call, and a payload that
// arrives with it in one cache miss. Two cache lines, since processors fetch them in pairs; up to
// 56 bytes are on the word's own.
struct alignas(128) SharedLine {
  static constexpr size_t kBytes = 120;
  std::atomic<uint64_t> word;
  std::byte payload[kBytes];
};

// Counts a rank's synchronisations inside calls.
struct alignas(128) SharedPhase {
  std::atomic<uint64_t> count;
};

// A rank's memory for one group. The notes describe the calls for a peer that expected another;
// they are not on the lines, because a line that a peer has read must come back before it is
// written, and stores wait for those before them.
struct SharedSlots {
  // The number of calls by which a rank may be ahead of its peers, such as the root of a broadcast.
  // Ranks that share a CPU then switch only once in that many calls.
  static constexpr size_t kLines = 32;
  static constexpr size_t kCopies = 8;  // likewise with inputs that a line has no room for
  static constexpr size_t kCopiedBytes = 64 << 10;
  static constexpr size_t kStagingBytes = 1 << 20;
  static constexpr size_t kNoteBytes = 64;
  alignas(64) std::byte notes[kLines][kNoteBytes];
  std::byte copies[kCopies][kCopiedBytes];
  std::byte staging[kStagingBytes];  // for tiles
};

// Fetches a cache line exclusively before it is written, so that data published by the write become
// visible earlier by the time of the fetch.
inline void prefetch_to_write(const void* line) {
#if defined(__x86_64__)
  // By assembly: the compiler emits a read prefetch, because some x86-64 CPUs lack this
  // instruction; they ignore it.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}
// Fetches all lines of the range, up to about as many as can be fetched at once.
inline void prefetch_to_write(const std::byte* data, size_t bytes) {
  constexpr size_t kMost = 4 << 10;
  for (size_t at = 0; at < std::min(bytes, kMost); at += 64) prefetch_to_write(data + at);
}

}  // namespace gxp
