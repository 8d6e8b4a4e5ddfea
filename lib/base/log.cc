#include "lib/base/log.h"

#include <unistd.h>

#include <array>
#include <atomic>

#include "lib/base/text/visible_text.h"

namespace gxp {
namespace {

// The log is the one piece of global state: a sink that every layer may use, like stderr itself.
std::atomic<LogLevel> log_level{LogLevel::kInfo};
thread_local int thread_rank = -1;

constexpr std::array<std::string_view, 3> kLevelWords = {"", "warn ", "error "};

}  // namespace

void set_log_rank(int rank) { thread_rank = rank; }
int log_rank() { return thread_rank; }
void set_log_level(LogLevel level) { log_level = level; }

std::string log_line(LogLevel level, std::string_view message) {
  const std::string origin = thread_rank < 0 ? "gxp" : fmt::format("gxp[rank {}]", thread_rank);
  return fmt::format("{} {}{}\n", origin, kLevelWords[size_t(level)], visible(message));
}

void write_log(LogLevel level, std::string_view message) {
  if (level < log_level.load()) return;
  const std::string line = log_line(level, message);
  // A log that cannot be written has nowhere to complain.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace gxp
