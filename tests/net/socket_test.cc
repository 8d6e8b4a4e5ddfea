#include "lib/net/socket/socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <numeric>

#include "lib/net/socket/unix_socket.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/net/server_side.h"

using namespace gxp;
using namespace std::chrono_literals;

namespace {

Deadline in_10_s() { return Deadline::after(10s); }

struct Pair {
  Fd client;
  Fd server;
};

Pair connected(const std::string& host) {
  const Fd listener = listen_tcp({host, 0});
  Pair pair;
  pair.client = connect_tcp(local_endpoint(listener.get()), "rank 0", in_10_s());
  pair.server = accept_connection(listener);
  return pair;
}

bool host_has(const std::string& address) {
  return !error_of([&] { listen_tcp({address, 0}); }).kind.has_value();
}

}  // namespace

TEST_CASE("bytes arrive as sent over IPv4 and IPv6, more than a socket buffers", "[net]") {
  for (const std::string host : {"127.0.0.1", "::1", "localhost"}) {
    if (!host_has(host)) {
      WARN("not tested: this machine has no " << host);
      continue;
    }
    const Pair pair = connected(host);
    std::vector<uint32_t> sent(size_t{4} << 20), got(sent.size());
    std::iota(sent.begin(), sent.end(), 1U);
    auto writer = std::async(std::launch::async, [&] {
      write_all(pair.client.get(), std::as_bytes(std::span(sent)), "rank 0", in_10_s());
    });
    read_exact(pair.server.get(), std::as_writable_bytes(std::span(got)), "rank 1", in_10_s());
    writer.get();
    CHECK(got == sent);
  }
}

TEST_CASE("a port that is taken is named, with the way to choose another", "[net]") {
  const Fd first = listen_tcp({"127.0.0.1", 0});
  const int port = local_endpoint(first.get()).port;
  for (const char* host : {"127.0.0.1", ""}) {
    const Caught caught = error_of([&] { listen_tcp({host, port}); });
    CAPTURE(caught.message);
    CHECK(caught.kind == ErrorKind::kIo);
    CHECK(caught.says(std::to_string(port) + " is taken"));
    CHECK(caught.says("MASTER_PORT"));
  }
}

TEST_CASE("a range of ports is read as two in their order", "[net]") {
  CHECK(parse_port_range("", "comm.port_range") == PortRange{});
  CHECK(parse_port_range("30000-30100", "comm.port_range") == PortRange{30000, 30100});
  CHECK(parse_port_range("7-7", "comm.port_range") == PortRange{7, 7});
  for (const char* text : {"30000", "30100-30000", "0-7", "1-65536", "a-b", "1-2x", "-", "1-"}) {
    CAPTURE(text);
    const Caught caught = error_of([&] { parse_port_range(text, "comm.port_range"); });
    CHECK(caught.kind == ErrorKind::kConfig);
    CHECK(caught.says(std::string("comm.port_range: must be two ports in ascending order")));
  }
}

TEST_CASE("listeners share a range of ports, and one too many is told so", "[net]") {
  const int port = [] { return local_endpoint(listen_tcp({"127.0.0.1", 0}).get()).port; }();
  const PortRange one{port, port};
  const Fd first = listen_tcp_within(one, "127.0.0.1", 5);
  CHECK(local_endpoint(first.get()).port == port);
  const Caught caught = error_of([&] { listen_tcp_within(one, "127.0.0.1", 0); });
  CHECK(caught.kind == ErrorKind::kIo);
  CHECK(caught.says(fmt::format("the ports {0}-{0} are all taken", port)));
}

TEST_CASE("connecting where nobody listens ends at the deadline and says to whom", "[net]") {
  const int port = [] { return local_endpoint(listen_tcp({"127.0.0.1", 0}).get()).port; }();
  const Endpoint nobody{"127.0.0.1", port};
  const Caught caught = error_of([&] { connect_tcp(nobody, "rank 0", Deadline::after(100ms)); });
  CHECK(caught.kind == ErrorKind::kPeer);
  CHECK(caught.message ==
        "connect to rank 0 at " + to_string(nobody) + ": connection refused after 0.1 s");
  CHECK(error_of([] {
          connect_tcp({"no-such-host.invalid", 1}, "rank 0", Deadline::after(10ms));
        }).says("cannot resolve"));
}

TEST_CASE("connecting waits for a listener that comes later", "[net]") {
  const Endpoint endpoint = [] { return local_endpoint(listen_tcp({"127.0.0.1", 0}).get()); }();
  auto client =
      std::async(std::launch::async, [&] { return connect_tcp(endpoint, "x", in_10_s()); });
  const Fd listener = listen_tcp(endpoint);
  CHECK(accept_connection(listener).valid());
  CHECK(client.get().valid());
}

TEST_CASE("a silent and a gone peer are errors that name it", "[net]") {
  Pair pair = connected("127.0.0.1");
  std::array<std::byte, 4> data{};
  const Caught late =
      error_of([&] { read_exact(pair.client.get(), data, "rank 7", Deadline::after(20ms)); });
  CHECK((late.kind == ErrorKind::kPeer && late.says("rank 7") && late.says("0.02 s")));
  pair.server.reset();
  CHECK(error_of([&] { read_exact(pair.client.get(), data, "rank 7", in_10_s()); }).says("closed"));
  const std::vector<std::byte> much(size_t{64} << 20);  // SIGPIPE would end this test
  CHECK(error_of([&] { write_all(pair.client.get(), much, "rank 7", in_10_s()); }).says("rank 7"));
}

TEST_CASE("addresses are read and written, IPv6 in brackets", "[net]") {
  for (const std::string text : {"10.0.0.7:29500", "[::1]:80", "host0:1"})
    CHECK(to_string(parse_endpoint(text)) == text);
  for (const char* bad : {"", "host", "host:", ":80", "host:x", "host:70000", "::1:80"})
    CHECK(error_of([&] { parse_endpoint(bad); }).kind == ErrorKind::kUsage);
}

TEST_CASE("a local socket carries a descriptor to its peer", "[net]") {
  const std::string name = "gxp-socket-test-" + std::to_string(getpid());
  const Fd listener = listen_unix(name);
  CHECK(error_of([&] { listen_unix(name); }).kind == ErrorKind::kIo);
  const Fd client = connect_unix(name, "rank 1", in_10_s());
  const Fd server = accept_connection(listener);
  CHECK(peer_address(server.get()) == "a local socket");
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const Fd read_end(ends[0]), write_end(ends[1]);
  send_fd(client.get(), write_end.get(), "rank 0", in_10_s());
  const Fd passed = receive_fd(server.get(), "rank 1", in_10_s());
  CHECK(write(passed.get(), "x", 1) == 1);
  char byte = 0;
  CHECK((read(read_end.get(), &byte, 1) == 1 && byte == 'x'));
  write_all(client.get(), std::as_bytes(std::span("y", 1)), "rank 0", in_10_s());
  CHECK(error_of([&] { receive_fd(server.get(), "rank 1", in_10_s()); }).says("carries none"));
}

TEST_CASE("a local socket that nobody listens on is an error at the deadline", "[net]") {
  const Caught caught =
      error_of([] { connect_unix("gxp-nobody", "rank 3", Deadline::after(20ms)); });
  CHECK((caught.kind == ErrorKind::kPeer && caught.says("rank 3") && caught.says("@gxp-nobody")));
}
