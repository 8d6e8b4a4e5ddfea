#include "lib/report/terminal_line.h"

#include <fmt/format.h>
#include <unistd.h>

namespace gxp {
namespace {

// A terminal that has gone is no matter.
void write_over(std::string_view text) {
  const std::string line = fmt::format("\r\033[K{}", text);
  [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

TerminalLine::TerminalLine() : is_terminal_(::isatty(STDERR_FILENO) != 0) {}

bool TerminalLine::is_due() const {
  return is_terminal_ && std::chrono::steady_clock::now() - last_ >= std::chrono::milliseconds(200);
}

void TerminalLine::show(std::string_view text) {
  last_ = std::chrono::steady_clock::now();
  is_shown_ = true;
  write_over(text);
}

void TerminalLine::clear() {
  if (is_shown_) write_over("");
  is_shown_ = false;
}

}  // namespace gxp
