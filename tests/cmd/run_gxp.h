// The program gxp, and others, as processes of their own.
#pragma once

#include <unistd.h>

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/base/fd.h"
#include "tests/arguments.h"

namespace gxp {

struct Outcome {
  int code = -1;  // 128 + the number of a signal that ended the process; -1: it did not end in time
  std::string out;
  std::string err;

  // The lines of `err` that tell a failure, in order.
  [[nodiscard]] std::vector<std::string> errors() const;
};

struct Surroundings {
  std::map<std::string, std::string> environment;  // added to the test's own
  size_t file_bytes = 0;                           // a limit on every file; 0: none
};

// A running process. What it writes goes to memory, so it never waits for the test.
class Process {
 public:
  explicit Process(const std::vector<std::string>& argv, const Surroundings& surroundings = {});
  ~Process();  // kills it
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const { ::kill(pid_, number); }
  // Waits until it has ended; kills it at the deadline.
  Outcome end(Deadline deadline = Deadline::after(std::chrono::seconds(60)));

 private:
  pid_t pid_ = -1;
  Fd out_;
  Fd err_;
};

// `gxp ARGUMENTS`, without the variables by which launchers tell ranks who they are.
std::vector<std::string> gxp_argv(const std::vector<std::string>& arguments);
Outcome run_gxp(const std::vector<std::string>& arguments, const Surroundings& surroundings = {});

// The processes with `text` in their command line. An ended one that nobody has waited for has
// none.
std::vector<pid_t> processes_with(const std::string& text);
// Sends a signal to a rank that gxp's launcher has started, once there is one, of a job with `text`
// in its command line; false if none comes.
bool signal_rank(const std::string& text, int rank, int number);
// The value of a variable in a process's environment; "" without it or the process.
std::string variable_of(pid_t process, const std::string& name);

// Asks every millisecond; false at the deadline.
template <class Predicate>
bool poll_until(Predicate holds, Deadline deadline = Deadline::after(std::chrono::seconds(60))) {
  while (!holds()) {
    if (deadline.expired()) return false;
    ::usleep(1000);
  }
  return true;
}

}  // namespace gxp
