#include "lib/base/ending.h"

#include <new>
#include <string_view>
#include <system_error>

#include "lib/base/error.h"
#include "lib/base/text/visible_text.h"

namespace gxp {
namespace {

Ending ending(std::string_view message, ErrorKind kind) {
  return {fmt::format("gxp: error: {}\n", message), exit_code(kind)};
}

}  // namespace

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

}  // namespace gxp
