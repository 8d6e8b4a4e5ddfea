// Memory that the ranks of one host see of each other. With it a collective reads and writes its
// peers' memory instead of sending messages.
//
// Each rank has one segment (shm_segment.h), twice its even share of the host's memory unless
// address space is short, of which only what is used exists. It holds slots for each group of
// ranks, and a heap for communicator memory. The lines by which ranks synchronise (shared_lines.h)
// lie together in the segment of the host's first rank, since a rank reads all of them in each call
// and every additional page is a TLB miss (8 ranks on 2 cores, 8 bytes: 14.5 us with the lines in 8
// segments, see docs/RESULTS.md for what it is now). Memory outside the segments is reached by
// system calls, if the OS lets a rank (cross_memory_attach.h).
//   Threads  one at a time.
//   Errors   kPeer: a peer is lost, late, or has published what cannot be; kIo: no memory.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/base/fd.h"
#include "lib/transport/arena/cross_memory_attach.h"
#include "lib/transport/arena/shared_lines.h"
#include "lib/transport/arena/shm_segment.h"
#include "lib/transport/backoff.h"

namespace gxp {

// Messages with file descriptors between the ranks of a host, for memory that nothing but a
// descriptor names: a GPU's (device/device_sharing.h).
//
// Each two ranks have a pair of sockets of their own, one end of which was passed over their
// authenticated connection; on that connection itself, descriptors would mix with the bells
// (shm_segment.h). To take descriptors from the peer's process instead (pidfd_getfd) needs the
// permission to trace it and a common process namespace, which containers refuse.
//   Order    messages between two ranks arrive as sent.
//   Room     for a hundred messages or so that the peer has not taken; then send() waits.
//   Errors   kPeer: the peer is gone or late; kIo: no descriptor is left for this process.
//   Threads  one at a time, but for is_closed().
class DescriptorChannels {
 public:
  DescriptorChannels() = default;  // to nobody
  // `sockets[rank]` leads to each rank of this host, and is invalid for this one and those
  // elsewhere. All ranks of the host call it, and nothing else travels on them meanwhile.
  DescriptorChannels(int rank, const std::vector<Fd>& sockets, Deadline deadline);

  // `fd` -1: the message alone.
  void send(int rank, std::span<const std::byte> message, int fd, Deadline deadline) const;
  // A message of that size, and its descriptor, if it has one.
  [[nodiscard]] Fd receive(int rank, std::span<std::byte> message, Deadline deadline) const;
  // Whether the peer has ended, or closed its end. Any thread; never waits.
  [[nodiscard]] bool is_closed(int rank) const;

 private:
  std::vector<Fd> ends_;  // by rank
};

// Lets a rank wait for what peers write, and wakes them: the transport that has the arena.
class ArenaWaiter {
 public:
  virtual ~ArenaWaiter() = default;
  // Returns when ready(); throws kPeer at the deadline, on abort, or if one of `peers` is lost.
  virtual void wait_until(const std::function<bool()>& ready, std::span<const int> peers,
                          Deadline deadline) = 0;
  // Wakes `peer` if it sleeps. Call it after the store that it may wait for.
  virtual void wake(int peer) = 0;
};

class SharedArena {
 public:
  static constexpr int kGroups = 32;  // that have lines and slots here

  // Bytes of each rank's segment on a host with so many ranks. Halved while it exceeds the limit of
  // a file's size (ulimit -f), or while a process that maps `mappings` of them (0: each rank's)
  // would use more than half of the address space that its limit (ulimit -v) leaves it; 0 if that
  // leaves no useful heap.
  static size_t segment_bytes(int ranks, int mappings = 0);
  // Makes a new segment this process's own, before the host's other ranks get it.
  static void sign(const ShmSegment& mine, int ranks);
  // `segments[rank]` for every rank of this host, this one's own among them; empty for others.
  // `processes[rank]`: who has signed it, as this process knows it; 0: unknown.
  SharedArena(int rank, std::vector<ShmSegment> segments, std::span<const pid_t> processes,
              bool oversubscribed);
  // Before the first publish() or wait(); `waiter` outlives them.
  void attach(ArenaWaiter& waiter) { waiter_ = &waiter; }

  // The ranks that share memory, including this one, ascending.
  [[nodiscard]] std::span<const int> ranks() const { return ranks_; }
  // Ranks outnumber CPUs, so a rank that spins keeps its peer from running.
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
  // Makes the OS map the pages of a group now.
  void prefault(int group) const;

  // Zeroed and present, page-aligned.
  // kIo: "...", if the heap or the host's memory is used up.
  [[nodiscard]] Memory allocate(size_t bytes);
  void release(Memory memory) noexcept;
  // The offset of memory in this rank's segment; 0 unless it is entirely inside the heap.
  [[nodiscard]] uint64_t offset_of(const std::byte* data, size_t bytes) const;
  // The peer's memory at an offset that it has published.
  [[nodiscard]] std::byte* at(int rank, uint64_t offset, size_t bytes);

  // Whether cross-memory attach works between this rank and each of its peers. Peers may differ.
  [[nodiscard]] bool reaches_all_memory() const { return reaches_all_memory_; }
  [[nodiscard]] const CrossMemoryAttach& memory_of_rank(int rank) const {
    return peers_[size_t(rank)];
  }

  // The channels by which descriptors reach the peers; none at first.
  void use_channels(DescriptorChannels channels) { channels_ = std::move(channels); }
  [[nodiscard]] const DescriptorChannels& channels() const { return channels_; }

  // Stores and wakes the ranks of `peers` that sleep.
  void publish(std::atomic<uint64_t>& word, uint64_t value, std::span<const int> peers);
  // Whether ready() is true, or becomes true within some 50 ns: a pause takes as long.
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
  // If other processes need the CPUs, a yield may take milliseconds, and deadlines must still be
  // kept.
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
  DescriptorChannels channels_;
  ArenaWaiter* waiter_ = nullptr;
  bool oversubscribed_;
  std::vector<CrossMemoryAttach> peers_;  // by rank
  bool reaches_all_memory_;
  bool fenced_by_sleepers_;  // else publish() has a fence of its own
  size_t group_bytes_;       // of lines and phases
  size_t control_bytes_;     // of all groups
  std::byte* control_;       // in the first rank's segment; at its front, who sleeps, by rank
  std::map<uint64_t, uint64_t> used_;          // offset to bytes, of this rank's heap
  std::vector<std::vector<Touched>> touched_;  // by rank
};

}  // namespace gxp
