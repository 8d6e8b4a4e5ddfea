// How gxp fails: one exception type, with a kind that decides the exit code.
//
// The first place that knows the cause writes the message: act, object, cause, and a remedy if
// there is one. A failure that is expected is a value instead: std::optional, Support, or a list of
// Problems.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gxp {

enum class ErrorKind {
  kMismatch,     // a check failed: wrong results, differences or problems found
  kUsage,        // wrong command line
  kConfig,       // wrong settings
  kUnavailable,  // hardware, driver or library absent
  kIo,           // the system refused a file or a resource
  kCorrupt,      // a file's content is invalid
  kPeer,         // a rank is lost, late or failed
  kDevice,       // a local device or link failed
  kInternal,     // our bug
};

// Exit codes, in the order of the kinds: 1, 2, 2, 3, 4, 4, 5, 5, 70.
int exit_code(ErrorKind kind);

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

[[noreturn]] void fail_formatted(ErrorKind kind, fmt::string_view format, fmt::format_args args);
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  fail_formatted(kind, format, fmt::make_format_args(args...));
}

// Whether something can be used here, and if not, why not, in words for the user.
struct Support {
  bool ok = true;
  std::string reason;
  explicit operator bool() const { return ok; }
};

// Throws kIo with the system's text (errno) if `result` is negative: "ACT: No such file or
// directory". Returns `result`.
long check_sys(long result, std::string_view act);

// The system's text for an errno value; callable from any thread.
std::string system_text(int error_number);

// How an exception that nothing has handled ends the program.
struct Ending {
  std::string line;  // for stderr: "gxp: error: ...\n", as visible() shows it
  int code;          // exit code
};

// `cause` is not null.
Ending ending_of(const std::exception_ptr& cause);

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace gxp

// For our own mistakes only, never for input. Active in every build.
#define GXP_ASSERT(condition) \
  (static_cast<bool>(condition) ? void(0) : ::gxp::assertion_failed(#condition, __FILE__, __LINE__))
