#include "lib/base/thread.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "lib/base/error.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace gxp {

#ifndef __SANITIZE_ADDRESS__  // which maps more address space than any limit
TEST_CASE("a thread that cannot start is named, with the limits that hold", "[base]") {
  const pid_t child = fork();  // its limits are its own
  if (child == 0) {
    const rlimit little{size_t{1} << 20, size_t{1} << 20};
    setrlimit(RLIMIT_AS, &little);
    std::vector<std::jthread> threads;  // whose stacks are new: those of ended threads are kept
    const Caught caught = error_of([&threads] {
      for (int i = 0; i < 100; ++i) threads.push_back(start_thread("gxp-test", [] { pause(); }));
    });
    const bool right = caught.kind == ErrorKind::kIo &&
                       caught.message.starts_with("start thread gxp-test: ") &&
                       caught.says("address space of 1 MiB (ulimit -v)");
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}
#endif

TEST_CASE("what cannot start for want of processes is named", "[base]") {
  const Caught caught = error_of([] { fail_to_start("rank 3", EAGAIN); });
  CHECK(caught.kind == ErrorKind::kIo);
  CHECK(caught.says("start rank 3: Resource temporarily unavailable; "));
}

}  // namespace gxp
