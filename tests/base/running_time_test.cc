#include "lib/base/running_time.h"

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <array>
#include <thread>

#include "lib/base/deadline.h"
#include "tests/catch.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;

// The running time, in ms, that a child counts from just before it is stopped until it is continued,
// `pause` later. Its watch has a thread, so it is a process of its own.
int64_t counted_over(std::chrono::milliseconds pause) {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunningTimeWatch watch;
    const auto begin = running_time();
    ::raise(SIGSTOP);
    std::this_thread::sleep_for(3 * RunningTimeWatch::kLookEvery);  // the watch looks again
    const int64_t ms = (running_time() - begin) / 1ms;
    ::_exit(::write(pipe[1], &ms, sizeof ms) == sizeof ms ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  REQUIRE(WIFSTOPPED(status));
  std::this_thread::sleep_for(pause);
  ::kill(child, SIGCONT);
  int64_t ms = -1;
  REQUIRE(::read(pipe[0], &ms, sizeof ms) == sizeof ms);
  REQUIRE(::waitpid(child, &status, 0) == child);
  for (const int end : pipe) ::close(end);
  return ms;
}

}  // namespace

TEST_CASE("a deadline does not count time in which the process is stopped", "[base]") {
  const auto pause = 2000ms;
  const int64_t counted = counted_over(pause);
  CHECK(counted >= 2 * RunningTimeWatch::kLookEvery / 1ms);
  CHECK(counted < pause / 2 / 1ms);
}

TEST_CASE("without a watch, running time is real time", "[base]") {
  { const RunningTimeWatch watch; }
  const auto begin = running_time();
  const Deadline deadline = Deadline::after(2 * RunningTimeWatch::kLongestGap);
  std::this_thread::sleep_for(2 * RunningTimeWatch::kLongestGap);
  CHECK(running_time() - begin >= 2 * RunningTimeWatch::kLongestGap);
  CHECK(deadline.expired());
  CHECK(deadline.remaining() == Deadline::Duration::zero());
}

}  // namespace gxp
