// Memory that the ranks of one host see of each other. With it a collective reads and writes its
// peers' memory instead of sending messages.
//
// Each rank has one segment (shm_segment.h), twice its even share of the host's memory, of which
// only what is used exists. It holds slots for each group of ranks, and a heap for communicator
// memory. What ranks signal to each other lies together in the segment of the host's first rank,
// since a rank looks at all of it in each call and every page more is a TLB miss (8 ranks on 2
// cores, 8 bytes: 14.5 us with the lines in 8 segments, see docs/RESULTS.md for what it is now):
//   line    each call of a group publishes one line per rank: a word that names the call, and up to
//           kBytes with it, so that word and payload are one cache miss. A note about the call, for
//           whoever expected another, is elsewhere: a line that a peer has looked at comes back
//           before it is written, and stores wait for those before them.
//   phase   a counter that the rank advances inside a call.
// Memory that is not in the segments is reached through the kernel, if it lets a rank
// (peer_memory.h).
// Only the owner writes its lines, phase and slots. What they mean is for the collectives
// (collective/engine/shared_memory/shared_executor.h).
//   Threads  one at a time.
//   Errors   kPeer: a peer is lost, late, or has published what cannot be; kIo: no memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/transport/arena/peer_memory.h"
#include "lib/transport/arena/shm_segment.h"
#include "lib/transport/backoff.h"

namespace gxp {

// Lets a rank wait for what peers write, and wakes them: the transport beside the space.
class SpaceWaiter {
 public:
  virtual ~SpaceWaiter() = default;
  // Returns when ready(); throws kPeer at the deadline, on abort, or if one of `peers` is lost.
  virtual void wait_until(const std::function<bool()>& ready, std::span<const int> peers,
                          Deadline deadline) = 0;
  // Wakes `peer` if it sleeps. Call it after the store that it may wait for.
  virtual void ring(int peer) = 0;
};

// Two cache lines, since processors fetch them in pairs; up to 56 bytes are on the word's own.
struct alignas(128) SharedLine {
  static constexpr size_t kBytes = 120;
  std::atomic<uint64_t> word;
  std::byte payload[kBytes];
};

struct alignas(128) SharedPhase {
  std::atomic<uint64_t> count;
};

// A rank's memory for one group: a note and a slot per line, for what does not fit it, and staging,
// for what goes through in tiles.
struct SharedSlots {
  static constexpr size_t kLines = 8;
  static constexpr size_t kSmallBytes = 64 << 10;
  static constexpr size_t kStagingBytes = 1 << 20;
  static constexpr size_t kNoteBytes = 64;
  alignas(64) std::byte notes[kLines][kNoteBytes];
  std::byte small[kLines][kSmallBytes];
  std::byte staging[kStagingBytes];
};

// Brings a cache line here, and takes it from the peers' caches, before it is written: what is
// published behind it is seen sooner by as much as that takes.
inline void prefetch_to_write(const void* line) {
#if defined(__x86_64__)
  // The compiler would only fetch it, since not every x86-64 obeys this; those ignore it.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}
// All of its lines, but no more than can be on their way at once, or some more.
inline void prefetch_to_write(const std::byte* data, size_t bytes) {
  constexpr size_t kMost = 4 << 10;
  for (size_t at = 0; at < std::min(bytes, kMost); at += 64) prefetch_to_write(data + at);
}

class SharedSpace {
 public:
  static constexpr int kGroups = 32;  // that have lines and slots here

  // Bytes of each rank's segment on a host with so many ranks.
  static size_t segment_bytes(int ranks);
  // Makes a new segment this process's own, before the host's other ranks get it.
  static void sign(const ShmSegment& mine, int ranks);
  // `segments[rank]` for every rank of this host, this one's own among them; empty for others.
  // `processes[rank]`: who has signed it, as this process knows it; 0: unknown.
  SharedSpace(int rank, std::vector<ShmSegment> segments, std::span<const pid_t> processes,
              bool oversubscribed);
  // Before the first publish() or wait(); `waiter` outlives them.
  void attach(SpaceWaiter& waiter) { waiter_ = &waiter; }

  // The ranks that see each other, this one among them, ascending.
  [[nodiscard]] std::span<const int> ranks() const { return ranks_; }
  // Ranks outnumber CPUs: to spin is to keep the peer from running.
  [[nodiscard]] bool oversubscribed() const { return oversubscribed_; }
  // `index`: the rank's place in ranks(), since groups of one split have one number; `call`: any
  // number, taken modulo kLines.
  [[nodiscard]] SharedLine& line(int group, int index, uint64_t call) const {
    return lines_of(group)[call % SharedSlots::kLines * ranks_.size() + size_t(index)];
  }
  [[nodiscard]] SharedPhase& phase(int group, int index) const {
    return reinterpret_cast<SharedPhase*>(lines_of(group) +
                                          SharedSlots::kLines * ranks_.size())[index];
  }
  [[nodiscard]] SharedSlots& slots(int group, int rank) const {
    return reinterpret_cast<SharedSlots*>(segments_[size_t(rank)].memory().data +
                                          control_bytes_)[group];
  }
  // Brings the pages of a group in.
  void prefault(int group) const;

  // Zeroed and present, page-aligned.
  // kIo: "...", if the heap or the host's memory is used up.
  [[nodiscard]] Memory allocate(size_t bytes);
  void release(Memory memory) noexcept;
  // Where memory lies in this rank's segment; 0 unless it is wholly inside the heap.
  [[nodiscard]] uint64_t offset_of(const std::byte* data, size_t bytes) const;
  // The peer's memory at an offset that it has published.
  [[nodiscard]] std::byte* at(int rank, uint64_t offset, size_t bytes);

  // Whether the kernel copies between this rank's memory and any of its peers'. Peers may differ.
  [[nodiscard]] bool reaches_all_memory() const { return reaches_all_memory_; }
  [[nodiscard]] const PeerMemory& memory_of_peer(int rank) const { return peers_[size_t(rank)]; }

  // Stores and wakes the ranks of `peers` that sleep.
  void publish(std::atomic<uint64_t>& word, uint64_t value, std::span<const int> peers);
  // Whether it is, or becomes so within some 50 ns: a pause takes as long.
  template <class Ready>
  static bool look(const Ready& ready) {
    for (int i = 0; i < kLooks; ++i) {
      if (ready()) return true;
    }
    return false;
  }
  // Returns when ready(): spins as long as that can help, then yields, then sleeps. False: it has
  // not just spun.
  template <class Ready>
  bool wait(const Ready& ready, std::span<const int> peers, Deadline deadline) {
    for (int i = oversubscribed_ ? 0 : kSpins; i > 0; --i) {
      if (ready()) return true;
      pause_cpu();
    }
    Backoff backoff(oversubscribed_, kYieldTime);
    for (int turns = kTurns; !ready(); --turns) {
      if (turns > 0 && backoff.keep_awake()) continue;
      sleep(ready, peers, deadline);
      break;
    }
    return false;
  }

 private:
  static constexpr size_t kPageBytes = 4096;
  static constexpr int kLooks = 50;
  static constexpr int kSpins = 100;   // some 2 us, and as many in Backoff
  static constexpr int kTurns = 2000;  // some 0.5 ms
  // Where others want the CPUs, a yield may take milliseconds, and deadlines must still be kept.
  static constexpr std::chrono::milliseconds kYieldTime{20};

  void sleep(const std::function<bool()>& ready, std::span<const int> peers, Deadline deadline);
  [[nodiscard]] uint64_t heap_offset() const;
  [[nodiscard]] std::atomic<uint32_t>* asleep() const {
    return reinterpret_cast<std::atomic<uint32_t>*>(control_);
  }
  [[nodiscard]] SharedLine* lines_of(int group) const {
    return reinterpret_cast<SharedLine*>(control_ + kPageBytes + size_t(group) * group_bytes_);
  }

  struct Touched {  // of a peer's segment: [begin, end) pages are mapped
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  int rank_;
  std::vector<ShmSegment> segments_;
  std::vector<int> ranks_;
  SpaceWaiter* waiter_ = nullptr;
  bool oversubscribed_;
  std::vector<PeerMemory> peers_;  // by rank
  bool reaches_all_memory_;
  bool fenced_by_sleepers_;  // else publish() has a fence of its own
  size_t group_bytes_;       // of lines and phases
  size_t control_bytes_;     // of all groups
  std::byte* control_;       // in the first rank's segment; at its front, who sleeps, by rank
  std::map<uint64_t, uint64_t> used_;          // offset to bytes, of this rank's heap
  std::vector<std::vector<Touched>> touched_;  // by rank
};

}  // namespace gxp
