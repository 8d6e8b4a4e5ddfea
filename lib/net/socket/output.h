// What a process writes to one of its own streams, without ever waiting for the reader.
#pragma once

#include <string>
#include <string_view>

namespace gxp {

// SIGPIPE must be blocked or ignored. A descriptor that cannot be written, or whose reader has
// gone, takes everything from then on, and it is lost.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}

  // Keeps it; flush() writes it.
  void add(std::string_view text);
  // As much as its reader takes now.
  void flush();

  // Whether something is kept: then poll() for POLLOUT on fd(), which is -1 otherwise.
  [[nodiscard]] bool pending() const { return written_ < text_.size(); }
  [[nodiscard]] int fd() const { return pending() ? fd_ : -1; }

 private:
  int fd_;
  bool closed_ = false;
  std::string text_;
  size_t written_ = 0;  // of it
};

}  // namespace gxp
