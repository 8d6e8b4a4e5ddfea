// Where every thread of this process is.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gxp {

// A place in a program or library, as any process that has the same file can find it again.
struct StackFrame {
  std::string module;   // the file's name without its directories; "" for this program
  uint64_t offset = 0;  // from where the file is loaded
  std::string symbol;   // the nearest exported name; "": none
};

struct ThreadStack {
  pid_t thread = 0;
  std::string name;
  std::string state;               // as in /proc: "R (running)"
  std::vector<StackFrame> frames;  // the innermost first; empty: the thread did not answer
};

// Each thread is interrupted by a signal, in whose handler it notes its own stack; so a thread that
// waits in a call of the system or computes without end tells too, but none that the OS does not let
// run, as one that waits for a disk. Calls of the system that other threads are in may end with
// EINTR. The main thread comes first. One call at a time; takes some milliseconds, or 100 ms where a
// thread does not answer. At most 256 threads of 64 frames each.
std::vector<ThreadStack> capture_stacks();

// The build of this program, by its build ID; "" if it has none.
std::string build_id();

}  // namespace gxp
