#include "lib/transport/table/table.h"
#include "lib/transport/verbs/verbs_context.h"

#include <string>
#include <vector>

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

TransportChoice chosen_on(const Hosts& hosts, const std::string& master) {
  return choose_transports("auto", {.deadline = soon(), .master_addr = master, .hosts = hosts});
}

}  // namespace

TEST_CASE("auto takes shared memory on one host and tcp otherwise", "[table]") {
  CHECK(names_on("auto", host_identity()) == std::vector<std::string>{"shm", "shm"});
  CHECK(names_on("auto", "elsewhere") == std::vector<std::string>{"tcp", "tcp"});
}

TEST_CASE("where memory cannot be shared auto takes tcp, and the reason is told", "[table]") {
  const auto with_shm = [](const std::vector<ShmOffer>& offers) {
    return choose_transports(
        "auto",
        {.deadline = soon(), .master_addr = "127.0.0.1", .hosts = {"a", "a"}, .shm = offers});
  };
  CHECK(with_shm({{.arena_bytes = 1}, {.arena_bytes = 1}}).name() == "shm");
  const ShmOffer none{.obstacle = "cannot share memory: memfd_create: refused (rank 1)"};
  const TransportChoice choice = with_shm({none, none});
  CHECK(choice.name() == "tcp");
  CHECK(
      choice.uses[0].reason ==
      "no shm: ranks 0 and 1 cannot share memory: memfd_create: refused (rank 1); no verbs: ranks "
      "0 and 1 have not been asked for their RDMA ports; works everywhere");
}

TEST_CASE("a transport that is named but cannot serve is an error with the reason", "[table]") {
  const auto names = names_on("shm", "elsewhere");
  for (const std::string& name : names) CHECK(contains(name, "are on different hosts"));
}

TEST_CASE("a transport that does not exist is an error with the nearest name", "[table]") {
  std::string names = "auto";
  for (const TransportRow& row : transport_rows()) names.append(", ").append(row.name);
  for (const std::string& error : names_on("tpc", host_identity()))
    CHECK(contains(error, "'tpc' is unknown; did you mean 'tcp'?; use one of: " + names));
}

TEST_CASE("each pair of ranks is joined by the first row that reaches, with the reason",
          "[table]") {
  const TransportChoice choice = chosen_on({"a", "a", "b"}, "10.0.0.1");
  REQUIRE(choice.uses.size() == 2);
  CHECK(choice.name() == "shm+tcp");
  CHECK(choice.shares_memory());
  CHECK(choice.uses[0].reason == "same host");
  CHECK(contains(choice.uses[1].reason, "no shm: ranks 0 and 2 are on different hosts"));
  CHECK(contains(choice.uses[1].reason, "; works everywhere"));
  CHECK(chosen_on({"a", "b"}, "10.0.0.1").name() == "tcp");
  CHECK(chosen_on({"a", "a"}, "10.0.0.1").name() == "shm");
  CHECK(chosen_on({"a"}, "10.0.0.1").name() == "shm");
}

TEST_CASE("tcp is refused if other hosts are told to reach a loopback address", "[table]") {
  CHECK(contains(chosen_on({"a", "b"}, "127.0.0.1").refusal, "MASTER_ADDR is a loopback address"));
  CHECK(chosen_on({"a", "a"}, "127.0.0.1").refusal.empty());
}

TEST_CASE("hosts that do not know who they are do not share memory", "[table]") {
  CHECK(chosen_on({"unknown", "unknown"}, "10.0.0.1").name() == "tcp");
}

TEST_CASE("what verbs lack is told on every rank, and tcp serves", "[table]") {
  const auto lacks = [](const std::string& obstacle) {
    VerbsOffer with{.ports = {VerbsPort{}}};
    with.ports[0].gids[0].index = 1;
    TransportContext context{.deadline = soon(), .master_addr = "10.0.0.1", .hosts = {"a", "b"}};
    change_verbs(context).offers = {with,
                                    obstacle.empty() ? with : VerbsOffer{.obstacle = obstacle}};
    return choose_transports("auto", context);
  };
  CHECK(lacks("").name() == "verbs");
  CHECK(lacks("has no RDMA device").name() == "tcp");
  CHECK(contains(lacks("has no RDMA device").uses[0].reason,
                 "no verbs: ranks 0 and 1 cannot use RDMA: rank 1 has no RDMA device; "));
}

TEST_CASE("verbs that are asked for with protection are refused with the remedy", "[table]") {
  for (const std::string& error : names_on("verbs", "elsewhere")) {
    CHECK(contains(error, "comm.protect = \"authenticate\""));
    CHECK(contains(error, "\"none\" trusts the network"));
  }
}

TEST_CASE("a planned job has the transports of one that runs", "[table]") {
  CHECK(plan_transports("auto", 1, 8).name() == "shm");
  CHECK(plan_transports("auto", 2, 8).name() == "shm+tcp");
  CHECK(plan_transports("auto", 2, 1).name() == "tcp");
  CHECK(plan_transports("tcp", 2, 8).name() == "tcp");
  CHECK(contains(plan_transports("shm", 2, 8).refusal, "ranks 0 and 8 are on different hosts"));
}

TEST_CASE("the name of a transport tells what joins a pair of ranks", "[table]") {
  CHECK(transport_of_pair("shm+tcp", true) == "shm");
  CHECK(transport_of_pair("shm+tcp", false) == "tcp");
  CHECK(transport_of_pair("tcp", true) == "tcp");
  CHECK(transport_of_pair("shm+verbs", false) == "verbs");
  CHECK(plan_transports("verbs", 2, 8).name() == "verbs");
  CHECK(transports_for_all_hosts() == std::vector<std::string>{"auto", "tcp"});
}
