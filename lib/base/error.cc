#include "lib/base/error.h"

#include <array>
#include <cerrno>
#include <system_error>

namespace gxp {
namespace {

struct KindRow {
  std::string_view name;
  int exit_code;
};

constexpr std::array<KindRow, 9> kKinds = {{{"mismatch", 1},
                                            {"usage", 2},
                                            {"config", 2},
                                            {"unavailable", 3},
                                            {"io", 4},
                                            {"corrupt", 4},
                                            {"peer", 5},
                                            {"device", 5},
                                            {"internal", 70}}};

}  // namespace

int exit_code(ErrorKind kind) { return kKinds[static_cast<size_t>(kind)].exit_code; }

std::string_view to_string(ErrorKind kind) { return kKinds[static_cast<size_t>(kind)].name; }

std::string system_text(int error_number) {
  return std::error_code(error_number, std::generic_category()).message();
}

long check_sys(long result, std::string_view act) {
  if (result < 0) fail(ErrorKind::kIo, "{}: {}", act, system_text(errno));
  return result;
}

void assertion_failed(const char* expression, const char* file, int line) {
  fail(ErrorKind::kInternal, "{}:{}: assertion failed: {}; this is a bug in gxp", file, line,
       expression);
}

}  // namespace gxp
