#include "lib/transport/arena/descriptor_channels.h"

#include <fmt/format.h>
#include <poll.h>

#include <utility>

#include "lib/net/socket/unix_socket.h"

namespace gxp {
namespace {

std::string name_of_rank(size_t rank) { return fmt::format("rank {}", rank); }

}  // namespace

// The lower rank of each two makes the pair.
DescriptorChannels::DescriptorChannels(int rank, const std::vector<Fd>& sockets, Deadline deadline)
    : ends_(sockets.size()) {
  for (size_t peer = size_t(rank) + 1; peer < sockets.size(); ++peer) {
    if (!sockets[peer].valid()) continue;
    auto [mine, theirs] = make_message_sockets();
    send_fd(sockets[peer].get(), theirs.get(), name_of_rank(peer), deadline);
    ends_[peer] = std::move(mine);
  }
  for (size_t peer = 0; peer < size_t(rank); ++peer) {
    if (sockets[peer].valid())
      ends_[peer] = receive_fd(sockets[peer].get(), name_of_rank(peer), deadline);
  }
}

void DescriptorChannels::send(int rank, std::span<const std::byte> message, int fd,
                              Deadline deadline) const {
  send_message(ends_[size_t(rank)].get(), message, fd, name_of_rank(size_t(rank)), deadline);
}

Fd DescriptorChannels::receive(int rank, std::span<std::byte> message, Deadline deadline) const {
  return receive_message(ends_[size_t(rank)].get(), message, name_of_rank(size_t(rank)), deadline);
}

bool DescriptorChannels::is_closed(int rank) const {
  pollfd end{.fd = ends_[size_t(rank)].get(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&end, 1, 0) > 0 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace gxp
