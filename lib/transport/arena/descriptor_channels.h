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
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/base/fd.h"

namespace gxp {

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

}  // namespace gxp
