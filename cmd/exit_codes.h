// The meanings of gxp's exit codes: the one table behind --help and the man pages.
#pragma once

#include <array>
#include <string_view>

namespace gxp {

struct ExitCode {
  int code;
  std::string_view meaning;
};

inline constexpr int kExitOk = 0;

// A command that a signal ended in good order (`train` finishes its step and saves), as shells
// report it.
constexpr int exit_code_after_signal(int signal) { return 128 + signal; }

// Failures exit with gxp::exit_code(kind), see lib/base/error.h. Signal numbers are Linux's.
inline constexpr std::array<ExitCode, 11> kExitCodes = {{
    {kExitOk, "success"},
    {1, "a check failed: wrong results, differences or problems found"},
    {2, "wrong command line or settings"},
    {3, "hardware, driver or library absent"},
    {4, "I/O error, resource limit, or corrupt file"},
    {5, "a rank, link or device failed, a deadline passed, or a second signal ended train unsaved"},
    {70, "a bug in gxp"},
    {exit_code_after_signal(1),
     "train stopped by SIGHUP; the last step is saved if checkpoint.dir is set"},
    {exit_code_after_signal(2),
     "train stopped by SIGINT; the last step is saved if checkpoint.dir is set"},
    {exit_code_after_signal(10),
     "train stopped by SIGUSR1; the last step is saved if checkpoint.dir is set"},
    {exit_code_after_signal(15),
     "train stopped by SIGTERM; the last step is saved if checkpoint.dir is set"},
}};

}  // namespace gxp
