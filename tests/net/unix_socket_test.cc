#include "lib/net/socket/unix_socket.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <chrono>

#include "tests/catch.h"
#include "tests/error_of.h"

namespace gxp {
namespace {

Deadline before_long() { return Deadline::after(std::chrono::seconds(10)); }

// While it lives, this process may open no more files.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    ::getrlimit(RLIMIT_NOFILE, &former_);
    const Fd lowest(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const rlimit limit{rlim_t(lowest.get()), former_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &former_); }

 private:
  rlimit former_{};
};

}  // namespace

TEST_CASE("a descriptor that this process may not open is its limit's fault", "[net]") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const Fd here(ends[0]), there(ends[1]);
  send_fd(there.get(), there.get(), "rank 0", before_long());
  send_fd(there.get(), there.get(), "rank 0", before_long());
  CHECK(receive_fd(here.get(), "rank 1", before_long()).valid());
  const Caught caught = [&] {
    const NoMoreFiles none;
    return error_of([&] { receive_fd(here.get(), "rank 1", before_long()); });
  }();
  CAPTURE(caught.message);
  CHECK(caught.kind == ErrorKind::kIo);
  CHECK(caught.says("receive a descriptor from rank 1: this process may have no more files open"));
  CHECK(caught.says("(`ulimit -n`); raise that limit"));
}

}  // namespace gxp
