#include "lib/net/socket/authenticate.h"

#include <sys/socket.h>

#include <future>

#include "lib/base/fd.h"
#include "lib/net/socket/socket.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/net/server_side.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

using Role = Handshake::Role;

struct Ends {
  Fd client;
  Fd server;
};

Ends make_ends() {
  std::array<int, 2> fds{};
  check_sys(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), "make sockets");
  return {Fd(fds[0]), Fd(fds[1])};
}

struct Outcome {
  int client_sees = -1;
  int server_sees = -1;
  Caught client;
  Caught server;
};

Outcome handshake(const Secret& client_secret, const Secret& server_secret,
                  const std::string& server_purpose = "test") {
  const Ends ends = make_ends();
  Outcome outcome;
  auto server = std::async(std::launch::async, [&] {
    outcome.server = error_of([&] {
      outcome.server_sees = authenticate_server(ends.server.get(), server_secret, server_purpose,
                                                Deadline::after(10s))
                                .rank;
    });
  });
  outcome.client = error_of([&] {
    outcome.client_sees =
        authenticate_client(ends.client.get(), client_secret, "test", 3, Deadline::after(10s)).rank;
  });
  server.get();
  return outcome;
}

}  // namespace

TEST_CASE("with one secret both ends learn the other's rank", "[net]") {
  const Secret secret = Secret::generate();
  const Outcome outcome = handshake(secret, secret);
  CHECK(outcome.client_sees == 0);
  CHECK(outcome.server_sees == 3);
}

TEST_CASE("with different secrets or purposes both ends refuse", "[net]") {
  const Secret secret = Secret::generate();
  for (const Outcome& outcome :
       {handshake(secret, Secret::generate()), handshake(secret, secret, "other")}) {
    for (const Caught& end : {outcome.client, outcome.server}) {
      CHECK(end.kind == ErrorKind::kPeer);
      CHECK(end.says("the job secret differs"));
    }
  }
}

TEST_CASE("a proof that is reflected, replayed or for another rank fails", "[net]") {
  const Secret secret = Secret::generate();
  Handshake server(Role::kServer, secret, "test", 0, "peer");
  Handshake client(Role::kClient, secret, "test", 3, "peer");
  const auto server_proof = server.answer(client.hello());
  const auto client_proof = client.answer(server.hello());
  CHECK(server.verify(client_proof) == 3);
  CHECK(error_of([&] { server.verify(server_proof); }).kind == ErrorKind::kPeer);
  Handshake later(Role::kServer, secret, "test", 0, "peer");
  later.answer(client.hello());
  CHECK(error_of([&] { later.verify(client_proof); }).kind == ErrorKind::kPeer);
  auto forged = client.hello();
  forged[12] ^= 1;  // the rank
  server.answer(forged);
  CHECK(error_of([&] { server.verify(client_proof); }).kind == ErrorKind::kPeer);
  Handshake mirror(Role::kClient, secret, "test", 3, "peer");
  const auto own = mirror.answer(mirror.hello());  // a peer that sends everything back
  CHECK(error_of([&] { mirror.verify(own); }).kind == ErrorKind::kPeer);
}

TEST_CASE("garbage, another version, silence and hanging up are told apart", "[net]") {
  const Secret secret = Secret::generate();
  Handshake client(Role::kClient, secret, "test", 1, "peer");
  Handshake::Hello hello{};
  CHECK(error_of([&] { client.answer(hello); }).says("does not speak"));
  hello = client.hello();
  hello[8] = 9;
  CHECK(error_of([&] { client.answer(hello); }).says("version 9"));
  Ends ends = make_ends();
  const auto authenticate = [&] {
    authenticate_client(ends.client.get(), secret, "test", 1, Deadline::after(20ms));
  };
  CHECK(error_of(authenticate).says("0.02 s"));
  ends.server.reset();
  CHECK(error_of(authenticate).kind == ErrorKind::kPeer);
}
