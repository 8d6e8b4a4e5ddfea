#include "lib/transport/transport.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "lib/transport/table/table.h"
#include "tests/catch.h"
#include "tests/transport/worlds.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

std::vector<std::string> no_errors(int world_size) {
  return std::vector<std::string>(size_t(world_size));
}

// Sends to and receives from all peers at once; whether the right bytes came.
bool exchange_with_all(Transport& transport, size_t bytes, int message = 0) {
  std::vector<std::vector<std::byte>> sent;
  std::vector<std::vector<std::byte>> got(size_t(transport.world_size()),
                                          std::vector<std::byte>(bytes));
  std::vector<Ticket> tickets;
  const int me = transport.rank();
  for (int peer = 0; peer < transport.world_size(); ++peer) {
    sent.push_back(payload(bytes, me, peer, message));
    if (peer != me)
      tickets.push_back(transport.send(peer, 3, memory_of(std::as_const(sent.back()))));
  }
  for (int peer = 0; peer < transport.world_size(); ++peer) {
    if (peer != me) tickets.push_back(transport.recv(peer, 3, memory_of(got[size_t(peer)])));
  }
  for (const Ticket ticket : tickets) transport.wait(ticket, soon());
  bool right = true;
  for (int peer = 0; peer < transport.world_size(); ++peer) {
    right &= peer == me || got[size_t(peer)] == payload(bytes, peer, me, message);
  }
  return right;
}

void send_and_wait(Transport& transport, int peer, Tag tag, const std::vector<std::byte>& data) {
  transport.wait(transport.send(peer, tag, memory_of(data)), soon());
}

std::vector<std::byte> receive(Transport& transport, int peer, Tag tag, size_t bytes,
                               Deadline deadline = soon()) {
  std::vector<std::byte> data(bytes);
  transport.wait(transport.recv(peer, tag, memory_of(data)), deadline);
  return data;
}

}  // namespace

TEST_CASE("all ranks send first and all bytes arrive, whatever the size", "[transport]") {
  const int world_size = GENERATE(1, 2, 3, 5, 7);
  const auto name = GENERATE_COPY(from_range(worlds_of(world_size)));
  const size_t bytes = GENERATE(0, 1, 7, 32, 33, 8168, 8169, 65511, 65512, 65513, 65537, 5000000);
  if (bytes > 100000 && world_size > 3) return;
  CAPTURE(name, world_size, bytes);
  std::atomic<int> right = 0;
  const auto errors = run_over(name, world_size, [&](Transport& transport) {
    right += exchange_with_all(transport, bytes);
  });
  CHECK(errors == no_errors(world_size));
  CHECK(right == world_size);
}

TEST_CASE("messages of one tag arrive in the order of sending", "[transport]") {
  const auto name = GENERATE(from_range(worlds_of(2)));
  CAPTURE(name);
  constexpr int kMessages = 500;
  std::atomic<int> right = 0;
  const auto errors = run_over(name, 2, [&](Transport& transport) {
    for (int i = 0; i < kMessages; ++i) right += exchange_with_all(transport, size_t(1 + i * 7), i);
  });
  CHECK(errors == no_errors(2));
  CHECK(right == 2 * kMessages);
}

TEST_CASE("messages are received in another order than sent", "[transport]") {
  const auto name = GENERATE(from_range(worlds_of(2)));
  const size_t bytes = GENERATE(5, 3000000);
  CAPTURE(name, bytes);
  std::atomic<int> right = 0;
  const auto errors = run_over(name, 2, [&](Transport& transport) {
    if (transport.rank() == 0) {
      std::vector<std::vector<std::byte>> data;
      for (int tag = 0; tag < 4; ++tag) data.push_back(payload(bytes, 0, 1, tag));
      std::vector<Ticket> tickets;
      for (Tag tag = 0; tag < 4; ++tag)
        tickets.push_back(transport.send(1, tag, memory_of(std::as_const(data[tag]))));
      for (const Ticket ticket : tickets) transport.wait(ticket, soon());
    } else {
      for (const Tag tag : {2, 0, 3, 1})
        right += receive(transport, 0, tag, bytes) == payload(bytes, 0, 1, int(tag));
    }
  });
  CHECK(errors == no_errors(2));
  CHECK(right == 4);
}

TEST_CASE("a message whose receive is posted while it arrives is whole", "[transport]") {
  const auto name = GENERATE(from_range(worlds_of(3)));
  CAPTURE(name);
  const auto big = payload(4000000, 0, 1);
  const auto small = payload(9, 0, 1);
  std::atomic<bool> right = false;
  World world(name, 3);
  const auto errors = run_all(3, [&](int rank) {
    const auto store = world.join_store(rank);
    const auto transport = world.join(*store);
    std::vector<std::byte> got_big(big.size());
    std::vector<std::byte> got_small(small.size());
    std::vector<Ticket> tickets;
    if (rank == 0)
      tickets = {transport->send(1, 1, memory_of(big)), transport->send(1, 2, memory_of(small))};
    if (rank == 2) tickets = {transport->send(1, 3, memory_of(small))};
    if (rank == 1) {
      tickets = {transport->recv(0, 2, memory_of(got_small))};
      store->barrier("sent", soon());
      receive(*transport, 2, 3, small.size());  // meanwhile the big message begins to be parked
      tickets.push_back(transport->recv(0, 1, memory_of(got_big)));
    } else {
      store->barrier("sent", soon());
    }
    store->barrier("received", soon());
    for (const Ticket ticket : tickets) transport->wait(ticket, soon());
    if (rank == 1) right = got_big == big && got_small == small;
    store->close();
  });
  CHECK(errors == no_errors(3));
  CHECK(right);
}

TEST_CASE("a receiver that expects another size fails and names both sizes", "[transport]") {
  const auto name = GENERATE(from_range(worlds_of(2)));
  const bool parked = GENERATE(false, true);
  CAPTURE(name, parked);
  const auto errors = run_over(name, 2, [&](Transport& transport) {
    if (transport.rank() == 0) {
      const auto data = payload(16, 0, 1);
      const Ticket first = transport.send(1, 5, memory_of(data));
      if (parked) send_and_wait(transport, 1, 6, payload(1, 0, 1));
      transport.wait(first, soon());
      return;
    }
    if (parked) receive(transport, 0, 6, 1);
    receive(transport, 0, 5, 8);
  });
  CHECK(contains(errors[1], "message with tag 5 has 16 bytes, its receiver expects 8"));
}

TEST_CASE("the counters hold exactly the payload", "[transport]") {
  const auto name = GENERATE(from_range(worlds_of(3)));
  CAPTURE(name);
  std::atomic<int> right = 0;
  const auto errors = run_over(name, 3, [&](Transport& transport) {
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{100}, size_t{70000}})
      exchange_with_all(transport, bytes);
    const WireCounters counters = transport.counters();
    right += counters.bytes_sent == 2 * 70101 && counters.bytes_received == 2 * 70101 &&
             counters.messages_sent == 6 && counters.messages_received == 6;
  });
  CHECK(errors == no_errors(3));
  CHECK(right == 3);
}

TEST_CASE("a wait that is late names peer, bytes, tag and time", "[transport]") {
  const auto name = GENERATE(from_range(worlds_of(2)));
  CAPTURE(name);
  const auto errors = run_over(name, 2, [&](Transport& transport) {
    if (transport.rank() == 1) return;
    receive(transport, 1, 9, 2048, Deadline::after(50ms));
  });
  CHECK(contains(errors[0], "receive from rank 1: 2 KiB with tag 9 not complete after 0.05 s"));
}

TEST_CASE("abort wakes a waiter at once with its reason", "[transport]") {
  const auto name = GENERATE(from_range(worlds_of(2)));
  CAPTURE(name);
  const auto start = Deadline::Clock::now();
  const auto errors = run_over(name, 2, [&](Transport& transport) {
    if (transport.rank() == 1) return;
    const std::jthread aborter([&] { transport.abort("the user has had enough"); });
    receive(transport, 1, 1, 100);
  });
  CHECK(errors[0] == "the user has had enough");
  CHECK(Deadline::Clock::now() - start < kSoon);
}

TEST_CASE("a message that nobody waits for is told of, once", "[transport]") {
  const auto name = GENERATE(from_range(worlds_of(2)));
  CAPTURE(name);
  std::vector<std::pair<int, Tag>> told;
  const auto errors = run_over(name, 2, [&](Transport& transport) {
    const auto data = payload(100, 0, 1);
    if (transport.rank() == 0) {
      const Ticket early = transport.send(1, Tag{5} << 40, memory_of(data));
      send_and_wait(transport, 1, 6, data);
      transport.wait(early, soon());
      return;
    }
    transport.on_unexpected([&](int peer, Tag tag) { told.emplace_back(peer, tag); });
    receive(transport, 0, 6, 100);
    receive(transport, 0, Tag{5} << 40, 100);
  });
  CHECK(errors == no_errors(2));
  CHECK(told == std::vector<std::pair<int, Tag>>{{0, Tag{5} << 40}});
}

TEST_CASE("what is told of an unexpected message may end the wait", "[transport]") {
  const auto name = GENERATE(from_range(worlds_of(2)));
  CAPTURE(name);
  const auto errors = run_over(name, 2, [&](Transport& transport) {
    const auto data = payload(100, 0, 1);
    if (transport.rank() == 0) return transport.wait(transport.send(1, 5, memory_of(data)), soon());
    transport.on_unexpected([](int peer, Tag tag) {
      fail(ErrorKind::kPeer, "rank {} does something else: {}", peer, tag);
    });
    receive(transport, 0, 6, 100);
  });
  CHECK(contains(errors[1], "rank 0 does something else: 5"));
}

TEST_CASE("every rank knows the hosts of all", "[transport]") {
  std::vector<std::vector<int>> hosts(5);
  run_over("shm+tcp", 5, [&](Transport& transport) {
    const auto numbers = transport.hosts();
    hosts[size_t(transport.rank())].assign(numbers.begin(), numbers.end());
  });
  for (const auto& numbers : hosts) CHECK(numbers == std::vector<int>{0, 0, 0, 1, 1});
}
