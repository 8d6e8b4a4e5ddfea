#include "lib/base/error.h"

#include <array>
#include <cerrno>
#include <new>
#include <system_error>

#include "lib/base/text/visible_text.h"
#include "lib/base/to_error.h"

namespace gxp {
namespace {

constexpr std::array<int, 9> kExitCodesByKind = {1, 2, 2, 3, 4, 4, 5, 5, 70};

constexpr const char* kNoMemory =
    "allocate memory: none is left, or the address space limit (ulimit -v) is reached";
// Made while there is some.
std::string no_memory_line = fmt::format("gxp: error: {}\n", kNoMemory);

}  // namespace

void fail_formatted(ErrorKind kind, fmt::string_view format, fmt::format_args args) {
  throw Error(kind, fmt::vformat(format, args));
}

int exit_code(ErrorKind kind) { return kExitCodesByKind[static_cast<size_t>(kind)]; }

std::string system_text(int error_number) {
  if (error_number == EFBIG)
    return "File too large; the shell or batch system limits it (ulimit -f)";
  return std::error_code(error_number, std::generic_category()).message();
}

long check_sys(long result, std::string_view act) {
  if (result < 0)
    fail(ErrorKind::kIo, "{}: {}{}", act, system_text(errno),
         errno == EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
  return result;
}

Error to_error(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {ErrorKind::kIo, kNoMemory};
  } catch (const std::system_error& error) {  // such as a path that the library cannot examine
    return {ErrorKind::kIo, visible(error.what())};
  } catch (const std::exception& error) {
    return {ErrorKind::kInternal, visible(error.what()) + "; this is a bug in gxp"};
  }
}

// Where memory has run out, the line is one that was made before.
Ending ending_of(const std::exception_ptr& cause) try {
  const Error error = to_error(cause);
  return {fmt::format("gxp: error: {}\n", visible(error.what(), "\n")), exit_code(error.kind())};
} catch (const std::bad_alloc&) {
  return {std::move(no_memory_line), exit_code(ErrorKind::kIo)};
}

void assertion_failed(const char* expression, const char* file, int line) {
  fail(ErrorKind::kInternal, "{}:{}: assertion failed: {}; this is a bug in gxp", file, line,
       expression);
}

}  // namespace gxp
