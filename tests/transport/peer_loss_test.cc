#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "lib/transport/table/table.h"
#include "tests/catch.h"
#include "tests/transport/worlds.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

std::vector<std::byte> receive(Transport& transport, int peer, size_t bytes) {
  std::vector<std::byte> data(bytes);
  transport.wait(transport.recv(peer, 1, memory_of(data)), soon());
  return data;
}

// A process that is rank 1 and waits for a message that never comes.
pid_t start_waiting_rank(World& world) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    const auto store = world.join_store(1);
    const auto transport = world.join(*store);
    transport->wait(transport->send(0, 1, memory_of(payload(8, 1, 0))), soon());
    receive(*transport, 0, 8);
  } catch (...) {
  }
  _exit(1);
}

}  // namespace

TEST_CASE("a killed peer is noticed soon and named", "[peer_loss]") {
  const auto name = GENERATE(from_range(of_processes(worlds_of(2, false))));
  CAPTURE(name);
  pid_t child = -1;
  World world(name, 2, [&](World& early) { child = start_waiting_rank(early); });
  Deadline::Clock::time_point killed;
  const std::string error = run_all(1, [&](int) {
    const auto store = world.join_store(0);
    const auto transport = world.join(*store);
    receive(*transport, 1, 8);
    kill(child, SIGKILL);
    killed = Deadline::Clock::now();
    receive(*transport, 1, 8);
  })[0];
  const auto noticed = Deadline::Clock::now() - killed;
  waitpid(child, nullptr, 0);
  CHECK(contains(error, "rank 1"));
  CHECK(noticed < kSoon);
}

TEST_CASE("what a peer sent before it ended still arrives", "[peer_loss]") {
  const auto name = GENERATE(from_range(worlds_of(2, false)));
  CAPTURE(name);
  World world(name, 2);
  std::vector<std::byte> got;
  const auto errors = run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    {
      const auto transport = world.join(*store);
      if (rank == 1) transport->wait(transport->send(0, 1, memory_of(payload(3000, 1, 0))), soon());
      if (rank == 0) {
        store->barrier("rank 1 has ended", soon());
        got = receive(*transport, 1, 3000);
      }
    }
    if (rank == 1) store->barrier("rank 1 has ended", soon());
    store->close();
  });
  CHECK(errors == std::vector<std::string>(2));
  CHECK(got == payload(3000, 1, 0));
}

TEST_CASE("a rank that only sees the consequence names the first cause", "[peer_loss]") {
  const auto name = GENERATE(from_range(worlds_of(3, false)));
  CAPTURE(name);
  World world(name, 3);
  const auto errors = run_all(3, [&](int rank) {
    const auto store = world.join_store(rank);
    const auto transport = world.join(*store);
    if (rank == 2) fail(ErrorKind::kPeer, "rank 2 gives up");  // its store's end is the report
    receive(*transport, rank + 1, 8);                          // 0 waits for 1, which waits for 2
  });
  CHECK(contains(errors[0], "rank 2"));
  CHECK(contains(errors[1], "rank 2"));
}

TEST_CASE("a verdict of the store wakes every waiter", "[peer_loss]") {
  const auto name = GENERATE(from_range(worlds_of(3, false)));
  CAPTURE(name);
  World world(name, 3);
  const auto errors = run_all(3, [&](int rank) {
    const auto store = world.join_store(rank);
    const auto transport = world.join(*store);
    if (rank == 2) store->abort(2, "loss is NaN");
    receive(*transport, (rank + 1) % 3, 8);
  });
  for (const std::string& error : errors) CHECK(error == "rank 2: loss is NaN");
}

TEST_CASE("a peer that ends when it has all it waited for fails nobody", "[peer_loss]") {
  constexpr int kRanks = 5;
  constexpr int kWorlds = 3000;
  std::vector<std::string> failures;
  for (int i = 0; i < kWorlds; ++i) {
    InprocWorld world(kRanks);
    const auto errors = run_all(kRanks, [&](int rank) {
      const auto transport = world.make_transport(rank);
      const auto out = payload(64, rank, 0);
      std::vector<Ticket> sends;
      for (int peer = 0; peer < kRanks; ++peer) {
        if (peer != rank) sends.push_back(transport->send(peer, 1, memory_of(out)));
      }
      for (int peer = 0; peer < kRanks; ++peer) {
        if (peer != rank) receive(*transport, peer, 64);
      }
      for (const Ticket send : sends) transport->wait(send, soon());
    });
    std::ranges::copy_if(errors, std::back_inserter(failures),
                         [](const std::string& error) { return !error.empty(); });
  }
  CHECK(failures == std::vector<std::string>{});
}
