#include "lib/transport/peers/peer_transport.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/transport/worlds.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

constexpr int kRanks = 4;  // 0 and 1 on one host, 2 and 3 on the other

std::vector<std::byte> receive(Transport& transport, int peer) {
  std::vector<std::byte> data(8);
  transport.wait(transport.recv(peer, 1, memory_of(data)), soon());
  return data;
}

void send(Transport& transport, int peer) {
  transport.wait(transport.send(peer, 1, memory_of(payload(8, transport.rank(), peer))), soon());
}

// A process that is `rank`, tells rank 0 that it is there, and waits for what never comes.
pid_t start_waiting_rank(World& world, int rank) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    const auto store = world.join_store(rank);
    const auto transport = world.join(*store);
    send(*transport, 0);
    receive(*transport, 0);
  } catch (...) {
  }
  _exit(1);
}

}  // namespace

TEST_CASE("a rank that sleeps is woken from its host and from another", "[shm+tcp]") {
  const int sender = GENERATE(1, 2);
  CAPTURE(sender);
  const auto errors = run_over("shm+tcp", kRanks, [&](Transport& transport) {
    for (int i = 0; i < 20; ++i) {
      if (transport.rank() == 0) {
        receive(transport, sender);  // long enough for it to sleep: the sender waits for the answer
        std::this_thread::sleep_for(1ms);
        send(transport, sender);
      }
      if (transport.rank() != sender) continue;
      std::this_thread::sleep_for(1ms);
      send(transport, 0);
      receive(transport, 0);
    }
  });
  CHECK(errors == std::vector<std::string>(kRanks));
}

TEST_CASE("a killed rank is noticed by the sleeping ranks of both hosts", "[shm+tcp]") {
  const int victim = GENERATE(1, 2);
  CAPTURE(victim);
  pid_t child = -1;
  World world("shm+tcp", 3, [&](World& early) { child = start_waiting_rank(early, victim); });
  std::vector<std::string> errors(3);
  Deadline::Clock::time_point killed;
  run_all(2, [&](int index) {
    const int rank = index == 0 ? 0 : 3 - victim;
    const auto store = world.join_store(rank);
    const auto transport = world.join(*store);
    if (rank == 0) {
      receive(*transport, victim);
      killed = Deadline::Clock::now();
      kill(child, SIGKILL);
    }
    try {
      receive(*transport, victim);
    } catch (const Error& error) {
      errors[size_t(rank)] = error.what();
    }
  });
  CHECK(Deadline::Clock::now() - killed < kSoon);
  waitpid(child, nullptr, 0);
  CHECK(contains(errors[0], fmt::format("rank {}", victim)));
  CHECK(contains(errors[size_t(3 - victim)], fmt::format("rank {}", victim)));
}

TEST_CASE("abort wakes a rank that sleeps on both", "[shm+tcp]") {
  const auto start = Deadline::Clock::now();
  const auto errors = run_over("shm+tcp", 3, [&](Transport& transport) {
    if (transport.rank() != 0) return;
    const std::jthread aborter([&] { transport.abort("enough"); });
    receive(transport, 1);
  });
  CHECK(errors[0] == "enough");
  CHECK(Deadline::Clock::now() - start < kSoon);
}
