// The log: one line per event on stderr, lower case, written with one write() so that lines of
// several ranks on one pipe do not mix: "gxp[rank 3] warn transport: ...".
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace gxp {

enum class LogLevel { kInfo, kWarn, kError };

// The rank that the calling thread logs for; -1 (the default) prints no rank. A thread that works
// for a rank sets it at its start. Ranks may be threads of one process, so this is per thread.
void set_log_rank(int rank);
[[nodiscard]] int log_rank();

// Messages below this level are dropped. One value for the process; the default is kInfo.
void set_log_level(LogLevel level);

void write_log(LogLevel level, std::string_view message);
// The line that write_log() writes, for a caller that must not wait for the reader of stderr.
std::string log_line(LogLevel level, std::string_view message);

void write_formatted_log(LogLevel level, fmt::string_view format, fmt::format_args args);
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  write_formatted_log(LogLevel::kInfo, format, fmt::make_format_args(args...));
}
template <class... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  write_formatted_log(LogLevel::kWarn, format, fmt::make_format_args(args...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  write_formatted_log(LogLevel::kError, format, fmt::make_format_args(args...));
}

}  // namespace gxp
