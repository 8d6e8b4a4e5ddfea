#include "lib/base/error.h"

#include <array>
#include <cerrno>
#include <new>
#include <system_error>

#include "lib/base/text/visible_text.h"

namespace gxp {
namespace {

constexpr std::array<int, 9> kExitCodesByKind = {1, 2, 2, 3, 4, 4, 5, 5, 70};

Ending ending(std::string_view message, ErrorKind kind) {
  return {fmt::format("gxp: error: {}\n", message), exit_code(kind)};
}

}  // namespace

int exit_code(ErrorKind kind) { return kExitCodesByKind[static_cast<size_t>(kind)]; }

std::string system_text(int error_number) {
  return std::error_code(error_number, std::generic_category()).message();
}

long check_sys(long result, std::string_view act) {
  if (result < 0) fail(ErrorKind::kIo, "{}: {}", act, system_text(errno));
  return result;
}

Ending ending_of(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const Error& error) {
    return ending(visible(error.what(), "\n"), error.kind());
  } catch (const std::bad_alloc&) {
    return ending("allocate memory: the system has none left", ErrorKind::kIo);
  } catch (const std::system_error& error) {  // such as a path that the library cannot examine
    return ending(visible(error.what()), ErrorKind::kIo);
  } catch (const std::exception& error) {
    return ending(visible(error.what()) + "; this is a bug in gxp", ErrorKind::kInternal);
  }
}

void assertion_failed(const char* expression, const char* file, int line) {
  fail(ErrorKind::kInternal, "{}:{}: assertion failed: {}; this is a bug in gxp", file, line,
       expression);
}

}  // namespace gxp
