// Writes to a process's own output stream without ever blocking on the reader.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gxp {

// SIGPIPE must be blocked or ignored. After the reader has gone, everything is accepted and
// dropped. The same after a write has failed without a limit on what is kept: results with a hole
// in them would mislead. Where lines may be dropped, a line that cannot be written is dropped and
// later ones are tried again, such as a log's on a disk that was full for a moment.
class Output {
 public:
  // `most_kept`: bytes that are buffered for a slow reader; beyond that, whole lines are dropped,
  // and a line counts them. 0: no limit.
  explicit Output(int fd, size_t most_kept = 0) : fd_(fd), most_kept_(most_kept) {}

  // Keeps the line; flush() writes it.
  void add(std::string_view line);
  // Writes as much as the reader takes now.
  void flush();

  // Whether something is kept: then poll() for POLLOUT on fd(), which is -1 otherwise.
  [[nodiscard]] bool pending() const { return written_ < text_.size(); }
  [[nodiscard]] int fd() const { return pending() ? fd_ : -1; }
  // Bytes of it.
  [[nodiscard]] size_t held() const { return text_.size() - written_; }
  // errno of the write that failed; 0 if none did, or only because the reader has gone.
  [[nodiscard]] int error() const { return error_; }

 private:
  void count_dropped();
  void trim();

  int fd_;
  size_t most_kept_;
  size_t dropped_ = 0;  // lines, since the last count
  int error_ = 0;
  bool closed_ = false;
  std::string text_;
  size_t written_ = 0;  // of it
};

}  // namespace gxp
