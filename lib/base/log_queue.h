// A log that never waits for its reader: a terminal that is held (Ctrl-S), a pager, a stopped tee. A
// rank that waited would be late for the others.
#pragma once

#include <cstddef>
#include <memory>

namespace gxp {

// While it lives, write_log() leaves its lines to a thread. Lines beyond kMostBytes that the reader
// has not taken are dropped, and a line counts them. The destructor writes what is left, and waits for
// the reader as other programs do. One at a time.
class LogQueue {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 20;

  explicit LogQueue(int fd);
  ~LogQueue();
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace gxp
