#include "lib/transport/tcp/tcp.h"

#include <string>
#include <vector>

#include "lib/transport/tcp/tcp_stream.h"
#include "tests/catch.h"
#include "tests/transport/worlds.h"

using namespace gxp;

namespace {

// Each of `world_size` ranks sends `bytes` to the next; whether they came. Errors by rank.
std::vector<std::string> run_ring(int world_size, const TcpOptions& options, size_t bytes) {
  World world("tcp", world_size);
  return run_all(world_size, [&](int rank) {
    const auto store = world.join_store(rank);
    {
      TransportContext context = world.context(*store);
      context.tcp = options;
      const auto transport = make_transport("tcp", context);
      const int next = (rank + 1) % world_size;
      const int previous = (rank + world_size - 1) % world_size;
      const auto out = payload(bytes, rank, next);
      std::vector<std::byte> in(bytes);
      const Ticket receive = transport->recv(previous, 1, memory_of(in));
      transport->wait(transport->send(next, 1, memory_of(out)), soon());
      transport->wait(receive, soon());
      if (in != payload(bytes, previous, rank)) fail(ErrorKind::kPeer, "wrong bytes");
      store->barrier("end", soon());
    }
    store->close();
  });
}

}  // namespace

TEST_CASE("all ranks agree on what the probe has found", "[tcp]") {
  CHECK(run_ring(3, {}, 500000) == std::vector<std::string>(3));
}

TEST_CASE("connections and buffers are as the options say", "[tcp]") {
  const auto options = GENERATE(TcpOptions{.connections = 1, .buffer_bytes = 0},
                                TcpOptions{.connections = 2, .buffer_bytes = size_t{64} << 10},
                                TcpOptions{.connections = 5, .stripe_bytes = 777},
                                TcpOptions{.connections = 2, .protect = Protection::kEncrypt},
                                TcpOptions{.buffer_bytes = 0, .interface = "=lo"});
  CHECK(run_ring(2, options, 300000) == std::vector<std::string>(2));
}

TEST_CASE("ranks that want different protection are told whose settings differ", "[tcp]") {
  World world("tcp", 3);
  std::vector<std::string> errors(3);
  run_all(3, [&](int rank) {
    const auto store = world.join_store(rank);
    TransportContext context = world.context(*store);
    context.tcp.protect = rank == 2 ? Protection::kNone : Protection::kEncrypt;
    try {
      make_transport("tcp", context);
    } catch (const Error& error) {
      errors[size_t(rank)] = error.kind() == ErrorKind::kConfig ? error.what() : "";
    }
    store->close();
  });
  for (const std::string& error : errors)
    CHECK(contains(error, "rank 0 has comm.protect = \"encrypt\", rank 2 \"none\""));
}

TEST_CASE("an interface that no host has is refused before anything connects", "[tcp]") {
  for (const std::string& error : run_ring(2, {.interface = "none-such"}, 1)) {
    CHECK(contains(error, "none matches 'none-such'; this host has"));
  }
}

TEST_CASE("more peers than are tried one by one are served by events", "[tcp]") {
  std::atomic<int> right = 0;
  const auto errors = run_over("tcp", 9, [&](Transport& transport) {
    for (const size_t bytes : {1, 5000, 70000}) {
      std::vector<std::vector<std::byte>> in(9, std::vector<std::byte>(bytes));
      std::vector<Ticket> tickets;
      const auto out = payload(bytes, transport.rank(), 0);
      for (int peer = 0; peer < 9; ++peer) {
        if (peer == transport.rank()) continue;
        tickets.push_back(transport.recv(peer, 2, memory_of(in[size_t(peer)])));
        tickets.push_back(transport.send(peer, 2, memory_of(out)));
      }
      for (const Ticket ticket : tickets) transport.wait(ticket, soon());
      for (int peer = 0; peer < 9; ++peer) {
        right += peer == transport.rank() || in[size_t(peer)] == payload(bytes, peer, 0);
      }
    }
  });
  CHECK(errors == std::vector<std::string>(9));
  CHECK(right == 3 * 9 * 9);
}

TEST_CASE("a host is silent when repeated packets and probes are not answered", "[tcp]") {
  CHECK(is_silent({.unanswered = 4, .ms_since_acknowledged = 3000}));
  CHECK_FALSE(is_silent({.unanswered = 0, .ms_since_acknowledged = 60000}));  // nothing was asked
  CHECK_FALSE(is_silent({.unanswered = 1, .ms_since_acknowledged = 60000}));  // one packet lost
  CHECK_FALSE(is_silent({.unanswered = 9, .ms_since_acknowledged = 100}));
}
