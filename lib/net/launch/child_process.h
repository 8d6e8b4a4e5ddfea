// One rank as a child process of the launcher, with its output on two pipes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/environment.h"
#include "lib/base/fd.h"

namespace gxp {

// Cuts a stream of bytes into lines.
class LineSplitter {
 public:
  // A longer line is cut, so that a stream without newlines needs no more memory than this.
  static constexpr size_t kMaxLineBytes = size_t{1} << 20;

  void add(std::string_view bytes) { pending_ += bytes; }
  // The next whole line with its newline; nothing if it is not complete yet.
  std::optional<std::string> next();
  // The text after the last newline, at the end of the stream.
  std::string rest();

 private:
  std::string pending_;
  size_t start_ = 0;     // of the next line
  size_t searched_ = 0;  // bytes before it hold no newline from start_ on
};

// One stream of a rank on its way to the launcher's own.
struct RankOutput {
  Fd pipe;  // invalid at its end
  int sink = -1;
  LineSplitter lines;
};

class ChildProcess {
 public:
  struct Program {
    std::string path;
    std::vector<std::string> argv;
    Environment environment;
    std::vector<int> inherited{};  // descriptors that stay open
    sigset_t mask{};               // its signal mask
    std::vector<int> cpus{};       // that it may run on; empty: those of this process
  };

  // Starts it: in a process group of its own, stdin /dev/null, killed when the calling thread ends.
  // Throws kIo. A program that cannot be executed exits with 127 and a line on stderr.
  ChildProcess(int rank, const Program& program);
  // Kills it if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] bool running() const { return pid_ > 0; }
  // The wait status if it has ended since the last call; does not wait.
  std::optional<int> reap();
  // As of the last reap(): the signal that has stopped it, and since when; nothing while it runs.
  struct Stop {
    int signal = 0;
    std::chrono::nanoseconds since;  // by running_time()
  };
  [[nodiscard]] const std::optional<Stop>& stopped() const { return stopped_; }
  // Sends a signal, if it still runs.
  void signal(int number);
  // Whether it has not ended within `time` after SIGKILL: a cgroup's freezer, a debugger or a call into
  // the OS may hold it.
  [[nodiscard]] bool withstands_kill(std::chrono::nanoseconds time) const;
  // Gives it up: it does not count as running any more, and ends when it can.
  void leave() { pid_ = -1; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  // Whether `number` is a signal that signal() has sent.
  [[nodiscard]] bool was_sent(int number) const { return sigismember(&sent_, number) == 1; }

  RankOutput out;
  RankOutput err;

 private:
  int rank_;
  pid_t pid_ = -1;
  sigset_t sent_{};
  std::optional<Stop> stopped_;
  std::optional<std::chrono::nanoseconds> killed_at_;  // by running_time()
};

}  // namespace gxp
