// A line on a terminal's stderr that is written over, at most five times a second; nothing where
// stderr is no terminal.
#pragma once

#include <chrono>
#include <string_view>

namespace gxp {

// Threads: one at a time.
class TerminalLine {
 public:
  TerminalLine();
  ~TerminalLine() { clear(); }
  TerminalLine(const TerminalLine&) = delete;
  TerminalLine& operator=(const TerminalLine&) = delete;

  // Whether show() should be called now: it is a terminal, and the last time is long enough ago.
  [[nodiscard]] bool is_due() const;
  void show(std::string_view text);
  // Removes what is shown, so that the log can go on.
  void clear();

 private:
  bool is_terminal_;
  bool is_shown_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace gxp
