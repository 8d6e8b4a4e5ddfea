// The launcher of tests/net/launch_child.cc, as tests start it.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "tests/arguments.h"

namespace gxp {

// tests/net/launch_child.cc as a process, with its output.
class Launch {
 public:
  explicit Launch(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"launch_child", "launch"});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::array<int, 2> out{}, err{};
    check_sys(pipe2(out.data(), O_CLOEXEC), "make a pipe");
    check_sys(pipe2(err.data(), O_CLOEXEC), "make a pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], 1);
      dup2(err[1], 2);
      execv(GXP_LAUNCH_CHILD, argv.data());
      _exit(127);
    }
    out_ = Fd(out[0]);
    err_ = Fd(err[0]);
    close(out[1]);
    close(err[1]);
  }
  ~Launch() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    end();
  }

  void signal(int number) const { kill(pid_, number); }
  // Reads stdout until it has `count` lines, or ends.
  void read_lines(long count) {
    while (std::count(output.begin(), output.end(), '\n') < count && read_some(out_, output)) {
    }
  }
  // Reads all output and returns the exit code, 128 + the number of a signal that killed it.
  int end() {
    while (read_some(out_, output)) {
    }
    while (read_some(err_, errors)) {
    }
    return end_unread();
  }
  // The same without reading; -1 if it does not end.
  int end_unread() {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    int status = 0;
    while (pid_ > 0 && waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > give_up) return -1;
      usleep(1000);
    }
    if (pid_ > 0) code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    pid_ = -1;
    return code_;
  }

  std::string output;
  std::string errors;

 private:
  static bool read_some(const Fd& from, std::string& to) {
    std::array<char, 4096> chunk;
    const ssize_t count = read(from.get(), chunk.data(), chunk.size());
    if (count > 0) to.append(chunk.data(), size_t(count));
    return count > 0;
  }

  pid_t pid_ = -1;
  int code_ = -1;
  Fd out_;
  Fd err_;
};

}  // namespace gxp
