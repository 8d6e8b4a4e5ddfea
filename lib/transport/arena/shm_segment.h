// Memory that processes of one host share, and a bell to wake a rank that sleeps.
//
// A segment is an anonymous file (memfd): it has no name in any directory, reaches peers only as a
// descriptor over an authenticated socket, and is gone with its last process. Its size is sealed,
// so that no peer can make an access fail by truncating it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/base/deadline.h"
#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/device/memory.h"

namespace gxp {

// Whether the OS makes such files here.
Support supports_shared_memory();

// An owned mapping.
class ShmSegment {
 public:
  // New zeroed memory, rounded up to pages. Throws kIo with the bytes wanted.
  static ShmSegment create(size_t bytes);
  // Memory that a peer has made. Throws kPeer unless it is sealed and has exactly those bytes.
  static ShmSegment map(Fd fd, size_t bytes);

  ShmSegment() = default;  // none
  ShmSegment(ShmSegment&& other) noexcept;
  ShmSegment& operator=(ShmSegment&& other) noexcept;
  ~ShmSegment();

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] Memory memory() const { return memory_; }
  // Maps the pages of a range now, so that the first message has no page faults (1.5 us each).
  void prefault(size_t offset, size_t bytes) const;

 private:
  ShmSegment(Fd fd, size_t bytes);
  Fd fd_;
  Memory memory_;
};

// A rank's bell, in its own segment, rung by peers. Lives in shared, zeroed memory.
// The sleeper calls prepare(), looks once more for work, and sleeps; a peer publishes its work and
// rings. Both use sequentially consistent flags, so one of the two sees the other.
struct ShmDoorbell {
  enum Sleep : uint32_t {
    kAwake,
    kOnFutex,
    kOnSockets,  // the sleeper also polls sockets: a peer sends a byte over the socket of the pair
  };
  std::atomic<uint32_t> sleeping;
  std::atomic<uint32_t> rings;  // futex word

  // Returns what sleep() takes.
  uint32_t prepare(Sleep how) {
    sleeping.store(how);
    return rings.load();
  }
  // On the futex. False if no peer rang until the deadline.
  bool sleep(uint32_t prepared, Deadline deadline);
  void done() { sleeping.store(kAwake); }
  // Costs one load while the rank is awake. `socket` leads from the peer to the rank.
  void ring(int socket) {
    if (sleeping.load() == kAwake) return;
    const uint32_t how = sleeping.exchange(kAwake);
    if (how == kOnFutex) ring_always();
    if (how == kOnSockets) send_bell(socket);
  }
  // Through the futex, for the rank's own threads.
  void ring_always();

 private:
  static void send_bell(int socket);
};

}  // namespace gxp
