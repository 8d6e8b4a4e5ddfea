#include "lib/net/socket/output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace gxp {

void Output::add(std::string_view text) {
  if (!closed_) text_ += text;
}

void Output::flush() {
  while (pending()) {
    // POLLOUT on a pipe promises room for PIPE_BUF bytes, so that write() does not block. Asked
    // before each one, since the other stream may be the same pipe.
    pollfd entry{fd_, POLLOUT, 0};
    if (::poll(&entry, 1, 0) <= 0) return;
    const size_t size = std::min<size_t>(text_.size() - written_, PIPE_BUF);
    const ssize_t count = ::write(fd_, text_.data() + written_, size);
    if (count >= 0) {
      written_ += size_t(count);
      continue;
    }
    if (errno == EAGAIN || errno == EINTR) return;
    closed_ = true;
    written_ = text_.size();
  }
  text_.clear();
  written_ = 0;
}

}  // namespace gxp
