#include "lib/net/socket/output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "lib/base/log.h"

namespace gxp {

void Output::add(std::string_view line) {
  if (closed_) return;
  if (most_kept_ > 0 && held() + line.size() > most_kept_) {
    ++dropped_;
    return;
  }
  count_dropped();
  text_ += line;
}

void Output::count_dropped() {
  if (dropped_ == 0) return;
  text_ += log_line(
      LogLevel::kWarn,
      fmt::format("log: {} lines were dropped here, since their reader was too slow", dropped_));
  dropped_ = 0;
}

void Output::flush() {
  while (pending()) {
    // POLLOUT on a pipe promises room for PIPE_BUF bytes, so that write() does not block. Asked
    // before each one, since the other stream may be the same pipe.
    pollfd entry{fd_, POLLOUT, 0};
    if (::poll(&entry, 1, 0) <= 0) return trim();
    const size_t size = std::min<size_t>(text_.size() - written_, PIPE_BUF);
    const ssize_t count = ::write(fd_, text_.data() + written_, size);
    if (count >= 0) {
      written_ += size_t(count);
      continue;
    }
    if (errno == EAGAIN || errno == EINTR) return trim();
    if (errno != EPIPE) error_ = errno;
    closed_ = errno == EPIPE || most_kept_ == 0;
    dropped_ = 0;
    written_ = text_.size();
  }
  trim();
  if (dropped_ == 0) return;
  count_dropped();
  flush();
}

// Frees what is written, once in a while: a reader that is never level must not cost memory.
void Output::trim() {
  constexpr size_t kOften = size_t{1} << 20;
  if (pending() && written_ < kOften) return;
  text_.erase(0, written_);
  written_ = 0;
}

}  // namespace gxp
