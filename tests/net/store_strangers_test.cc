// Connections of those who do not know the secret.
#include <sys/resource.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "lib/net/store/rendezvous.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/net/store_job.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return size_t(std::distance(begin(all), end(all)));
}

}  // namespace

TEST_CASE("1030 silent strangers keep no rank out and take few descriptors", "[net]") {
  const Job job(2);
  const auto first = job.join(0);
  const size_t before = open_descriptors();
  std::vector<Fd> strangers;
  for (int i = 0; i < 1030; ++i) {
    strangers.push_back(connect_tcp(job.endpoint, "store", soon()));
    CHECK(open_descriptors() <= before + strangers.size() + 66);
    if (i % 4 == 3) strangers.erase(strangers.begin(), strangers.begin() + 3);
  }
  const auto second = job.join(1);
  second->set("key", "value");
  CHECK(first->get("key", soon()) == "value");
}

TEST_CASE("700 strangers that begin a handshake keep no rank out", "[net]") {
  const Job job(2);
  const auto first = job.join(0);
  const Handshake handshake(Handshake::Role::kClient, Secret::generate(), "store", 1, "");
  std::vector<Fd> strangers;
  for (int i = 0; i < 700; ++i) {
    strangers.push_back(connect_tcp(job.endpoint, "store", soon()));
    write_all(strangers.back().get(), std::as_bytes(std::span(handshake.hello())), "store", soon());
  }
  const auto start = Deadline::Clock::now();
  const auto second = job.join(1);
  CHECK(Deadline::Clock::now() - start < 6s);  // 1 s each for 64 at a time would be 11 s
}

TEST_CASE("a server without a descriptor left says so, and what to do", "[net]") {
  const Job job(2);
  const auto first = job.join(0);
  // The sanitizer of undefined behaviour looks at the first Error through a pipe.
  CHECK(error_of([] { fail(ErrorKind::kPeer, "none"); }).kind == ErrorKind::kPeer);
  rlimit before{};
  check_sys(getrlimit(RLIMIT_NOFILE, &before), "read a limit");
  const rlim_t next(rlim_t(Fd(dup(0)).get()));  // the lowest free one
  const rlimit used_up{next + 1, before.rlim_max};
  check_sys(setrlimit(RLIMIT_NOFILE, &used_up), "set a limit");
  const auto join = [&] { Store(job.endpoint, 1, 2, job.secret, Deadline::after(300ms)); };
  CHECK(error_of(join).kind == ErrorKind::kPeer);  // it has taken the last itself
  const auto verdict = first->wait_verdict(soon());
  check_sys(setrlimit(RLIMIT_NOFILE, &before), "set a limit");
  REQUIRE(verdict);
  CHECK(verdict->reason.find("accept a rank: Too many open files; raise") == 0);
}

TEST_CASE("once all ranks are there the store's port is closed, and strangers are gone", "[net]") {
  const Job job(2);
  const Fd stranger = connect_tcp(job.endpoint, "store", soon());
  const auto ranks = job.join_all();
  std::byte byte{};
  const auto read_to_end = [&] {
    for (;;) read_exact(stranger.get(), {&byte, 1}, "store", soon());
  };
  CHECK(error_of(read_to_end).says("closed the connection"));
  const auto come_late = [&] { connect_tcp(job.endpoint, "store", Deadline::after(1ms)); };
  CHECK(error_of(come_late).says("connection refused"));
}

TEST_CASE("joining a job raises the soft limit of descriptors to the hard one", "[net]") {
  rlimit before{};
  check_sys(getrlimit(RLIMIT_NOFILE, &before), "read a limit");
  const rlimit low{256, before.rlim_max};
  check_sys(setrlimit(RLIMIT_NOFILE, &low), "set a limit");
  Rendezvous job = join_job({}, {}, soon());
  rlimit now{};
  check_sys(getrlimit(RLIMIT_NOFILE, &now), "read a limit");
  CHECK(now.rlim_cur == before.rlim_max);
  check_sys(setrlimit(RLIMIT_NOFILE, &before), "set a limit");
  job.close(soon());
}
