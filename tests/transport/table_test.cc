#include "lib/transport/table.h"

#include <string>
#include <vector>

#include "lib/transport/shm/shm.h"
#include "lib/transport/tcp/tcp.h"
#include "tests/catch.h"
#include "tests/transport/worlds.h"

using namespace gxp;

namespace {

// What transport each rank gets, or the error, when rank 1 claims to be on `host`.
std::vector<std::string> names_on(const std::string& transport, const std::string& host) {
  World world("auto", 2);
  std::vector<std::string> names(2);
  const auto errors = run_all(2, [&](int rank) {
    const auto store = world.join_store(rank);
    TransportContext context = world.context(*store);
    if (rank == 1) context.host = host;
    context.master_addr = "0.0.0.0";  // leads to this host on Linux, and is not a loopback address
    names[size_t(rank)] = make_transport(transport, context)->name();
    store->close();
  });
  for (size_t rank = 0; rank < 2; ++rank) names[rank] += errors[rank];
  return names;
}

}  // namespace

TEST_CASE("auto takes shared memory on one host and tcp otherwise", "[table]") {
  CHECK(names_on("auto", host_identity()) == std::vector<std::string>{"shm", "shm"});
  CHECK(names_on("auto", "elsewhere") == std::vector<std::string>{"tcp", "tcp"});
}

TEST_CASE("a transport that is named but cannot serve is an error with the reason", "[table]") {
  const auto names = names_on("shm", "elsewhere");
  for (const std::string& name : names) CHECK(contains(name, "are on different hosts"));
}

TEST_CASE("a transport that does not exist is an error with the nearest name", "[table]") {
  for (const std::string& error : names_on("tpc", host_identity()))
    CHECK(contains(error, "there is no 'tpc', only auto, shm, shm+tcp, tcp; did you mean 'tcp'?"));
}

TEST_CASE("tcp is refused if other hosts are told to reach a loopback address", "[table]") {
  TransportContext context{.deadline = soon(), .master_addr = "127.0.0.1", .host = "a"};
  CHECK_FALSE(supports_tcp(context, {"a", "b"}));
  CHECK(supports_tcp(context, {"a", "a"}));
}

TEST_CASE("hosts that do not know who they are do not share memory", "[table]") {
  CHECK_FALSE(supports_shm({.deadline = soon(), .host = "unknown"}, {"unknown", "unknown"}));
}
