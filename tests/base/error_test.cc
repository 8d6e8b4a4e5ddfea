#include "lib/base/error.h"

#include <fcntl.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

#include "lib/base/to_error.h"
#include "tests/catch.h"

namespace gxp {

TEST_CASE("every kind of error has its documented exit code", "[base]") {
  const auto [kind, code] = GENERATE(table<ErrorKind, int>({{ErrorKind::kMismatch, 1},
                                                            {ErrorKind::kUsage, 2},
                                                            {ErrorKind::kConfig, 2},
                                                            {ErrorKind::kUnavailable, 3},
                                                            {ErrorKind::kIo, 4},
                                                            {ErrorKind::kCorrupt, 4},
                                                            {ErrorKind::kPeer, 5},
                                                            {ErrorKind::kDevice, 5},
                                                            {ErrorKind::kInternal, 70}}));
  CHECK(exit_code(kind) == code);
}

TEST_CASE("a failure carries its kind and its formatted message", "[base]") {
  try {
    fail(ErrorKind::kPeer, "connect to rank {}: {}", 3, "refused");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kPeer);
    CHECK(std::string(error.what()) == "connect to rank 3: refused");
  }
}

TEST_CASE("what others throw becomes an error of the kind that fits", "[base]") {
  const auto kind_of = [](const auto& thrown) {
    return to_error(std::make_exception_ptr(thrown)).kind();
  };
  CHECK(kind_of(Error(ErrorKind::kPeer, "gone")) == ErrorKind::kPeer);
  CHECK(kind_of(std::bad_alloc()) == ErrorKind::kIo);
  CHECK(kind_of(std::system_error(EAGAIN, std::generic_category())) == ErrorKind::kIo);
  CHECK(kind_of(std::out_of_range("at")) == ErrorKind::kInternal);
}

TEST_CASE("a refused system call is an error with the system's text", "[base]") {
  const auto open_missing = [] {
    check_sys(::open("/nonexistent", O_RDONLY), "open /nonexistent");
  };
  CHECK_THROWS_WITH(open_missing(), "open /nonexistent: No such file or directory");
  CHECK(check_sys(7, "read") == 7);
  const auto fail_with = [](int cause) {
    errno = cause;
    check_sys(-1, "open it");
  };
  CHECK_THROWS_WITH(fail_with(EMFILE), Catch::Matchers::Contains("(ulimit -n)"));
  CHECK_THROWS_WITH(fail_with(EFBIG), Catch::Matchers::Contains("(ulimit -f)"));
}

TEST_CASE("a failed assertion names the expression and calls itself a bug", "[base]") {
  CHECK_THROWS_WITH(GXP_ASSERT(1 + 1 == 3), Catch::Matchers::Contains("1 + 1 == 3; this is a bug"));
}

}  // namespace gxp
