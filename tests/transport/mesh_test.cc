#include "lib/transport/stream/mesh.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/net/socket/authenticate.h"
#include "lib/net/socket/socket.h"
#include "tests/catch.h"
#include "tests/relay.h"
#include "tests/transport/worlds.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

Fd listen_here() { return listen_tcp({"127.0.0.1", 0}); }

Fd connect_there(const std::string& where, std::string_view peer, Deadline deadline) {
  return connect_tcp(parse_endpoint(where), peer, deadline);
}

std::vector<Fd> join_mesh(const TransportContext& context, Fd listener) {
  const std::string address = to_string(local_endpoint(listener.get()));
  return connect_mesh(context, {"test", std::move(listener), address, connect_there});
}

// Ranks 0 and 1 meet through a relay.
std::vector<std::string> meet_through(const Meddle& meddle) {
  World world("tcp", 2);
  return run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    Fd listener = listen_here();
    const Relay relay(local_endpoint(listener.get()), meddle);
    connect_mesh(world.context(*store),
                 {"test", std::move(listener), to_string(relay.endpoint()), connect_there});
    store->barrier("end", soon());
    store->close();
  });
}

// Ranks 0 and 1 meet while `stranger` is at rank 0's door first.
std::vector<std::string> meet_beside(const std::function<Fd(const Endpoint&, World&)>& stranger,
                                     std::chrono::milliseconds patience = 20s) {
  World world("tcp", 2);
  Fd listener = listen_here();
  const Fd guest = stranger(local_endpoint(listener.get()), world);
  return run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    TransportContext context = world.context(*store);
    context.deadline = Deadline::after(patience);
    const auto sockets = join_mesh(context, rank == 0 ? std::move(listener) : listen_here());
    GXP_ASSERT(sockets[size_t(1 - rank)].valid() && !sockets[size_t(rank)].valid());
    store->close();
  });
}

}  // namespace

TEST_CASE("a silent stranger does not hold up the ranks", "[mesh]") {
  const auto errors =
      meet_beside([](const Endpoint& door, World&) { return connect_tcp(door, "rank 0", soon()); });
  CHECK(errors == std::vector<std::string>(2));
}

TEST_CASE("a stranger that sends garbage does not hold up the ranks", "[mesh]") {
  const auto errors = meet_beside([](const Endpoint& door, World&) {
    Fd socket = connect_tcp(door, "rank 0", soon());
    const std::vector<std::byte> garbage(5000, std::byte{'x'});
    write_all(socket.get(), garbage, "rank 0", soon());
    return socket;
  });
  CHECK(errors == std::vector<std::string>(2));
}

TEST_CASE("70 silent strangers do not hold up the ranks", "[mesh]") {
  std::vector<Fd> strangers;
  const auto start = Deadline::Clock::now();
  const auto errors = meet_beside([&](const Endpoint& door, World&) {
    for (int i = 0; i < 70; ++i) strangers.push_back(connect_tcp(door, "rank 0", soon()));
    return Fd();
  });
  CHECK(errors == std::vector<std::string>(2));
  CHECK(Deadline::Clock::now() - start < 4s);  // 5 s is a handshake's time
}

TEST_CASE("a handshake that is damaged once is tried again", "[mesh]") {
  std::atomic<int> connections = 0;  // that came to the relay
  const auto meddle = [&](RelayDirection way, uint64_t position, std::string& bytes) {
    if (way == RelayDirection::kToServer && position == 0 && ++connections == 1) bytes[0] = 'x';
  };
  CHECK(meet_through(meddle) == std::vector<std::string>(2));
  CHECK(connections == 2);
}

TEST_CASE("a proof that is altered each time is told as that by the rank that sent it", "[mesh]") {
  const auto errors =
      meet_through(meddle_at(RelayDirection::kToServer, Handshake::kHelloBytes + 6));
  CHECK(contains(errors[1], "connect to rank 0 by test: it rejected this rank's proof"));
  CHECK(contains(errors[1], "does someone tamper with the connection?"));
  CHECK(contains(errors[0], "rank 1: "));
}

TEST_CASE("a peer that cannot be reached is told with what to look at", "[mesh]") {
  World world("tcp", 2);
  const auto errors = run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    TransportContext context = world.context(*store);
    context.deadline = Deadline::after(rank == 0 ? 2s : 300ms);
    const std::string nowhere = to_string(local_endpoint(listen_here().get()));  // closed again
    try {
      connect_mesh(context, {.name = "test",
                             .listener = listen_here(),
                             .address = nowhere,
                             .connect = connect_there,
                             .remedy = "open the ports"});
    } catch (const Error& error) {
      store->abort(rank, error.what());  // as a rank of a job does
      store->close();
      throw;
    }
  });
  CHECK(contains(errors[1], "connection refused"));
  CHECK(contains(errors[1], "tried for 0.3 s; open the ports"));
  CHECK(contains(errors[0], "rank 1: connect to rank 0 at "));
}

TEST_CASE("a rank with another secret is not let in", "[mesh]") {
  std::future<std::string> guest;
  const auto errors = meet_beside([&](const Endpoint& door, World&) {
    guest = std::async(std::launch::async, [door]() -> std::string {
      const Fd socket = connect_tcp(door, "rank 0", soon());
      try {
        authenticate_client(socket.get(), Secret::generate(), "test", 1, soon());
        return "let in";
      } catch (const Error& error) {
        return error.what();
      }
    });
    return Fd();
  });
  CHECK(errors == std::vector<std::string>(2));
  CHECK(contains(guest.get(), "authenticate"));
}

#ifndef __SANITIZE_ADDRESS__  // with it, a sanitizer of types needs descriptors to look at memory
TEST_CASE("a rank without a descriptor left says so itself, and at once", "[mesh]") {
  pid_t child = -1;
  World world("tcp", 2, [&](World& early) {
    child = fork();
    if (child != 0) return;
    try {
      const auto store = early.join_store(1);
      store->barrier("ready", soon());
      join_mesh(early.context(*store), listen_here());
    } catch (...) {
    }
    _exit(0);
  });
  rlimit before{};
  check_sys(getrlimit(RLIMIT_NOFILE, &before), "read a limit");
  const std::string error = run_all(1, [&](int) {
    const auto store = world.join_store(0);
    store->barrier("ready", soon());
    Fd listener = listen_here();
    const rlim_t next(rlim_t(Fd(dup(0)).get()));  // the lowest free one
    const rlimit used_up{next, before.rlim_max};
    check_sys(setrlimit(RLIMIT_NOFILE, &used_up), "set a limit");
    join_mesh(world.context(*store), std::move(listener));
  })[0];
  check_sys(setrlimit(RLIMIT_NOFILE, &before), "set a limit");
  waitpid(child, nullptr, 0);
  CHECK(contains(error, "accept rank 1 by test: Too many open files; raise"));
}
#endif

TEST_CASE("a rank that does not come is named, with the stranger that came instead", "[mesh]") {
  World world("tcp", 2);
  const auto errors = run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    TransportContext context = world.context(*store);
    if (rank == 1) {
      const auto addresses = store->gather("transport test", "", soon());
      const Fd socket = connect_tcp(parse_endpoint(addresses[0]), "rank 0", soon());
      write_all(socket.get(), std::vector<std::byte>(100), "rank 0", soon());
      store->barrier("end", soon());
    } else {
      context.deadline = Deadline::after(300ms);
      const auto wait = [&] { join_mesh(context, listen_here()); };
      std::string message;
      try {
        wait();
      } catch (const Error& error) {
        message = error.what();
      }
      store->barrier("end", soon());
      store->close();
      throw Error(ErrorKind::kPeer, message);
    }
    store->close();
  });
  CHECK(contains(errors[0], "connect ranks by test: rank 1 did not connect within 0.3 s"));
  CHECK(contains(errors[0], "it does not speak gxp's protocol"));
}
