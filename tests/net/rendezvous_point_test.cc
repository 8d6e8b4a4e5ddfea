#include "lib/net/store/rendezvous_point.h"

#include <sys/socket.h>

#include "lib/net/identity/own_address.h"
#include "lib/net/store/rendezvous.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/net/store_job.h"
#include "tests/temporary_directory.h"

using namespace gxp;

namespace {

RankIdentity rank_of_two(int rank) {
  return identity_from({{"RANK", std::to_string(rank)}, {"WORLD_SIZE", "2"}});
}

}  // namespace

TEST_CASE("what rank 0 announces is what the others read", "[net]") {
  const Secret secret = Secret::generate();
  for (const Endpoint& store : {Endpoint{"10.0.0.7", 4711}, Endpoint{"fd00::7", 65535}}) {
    const auto [read, with] = parse_announcement(announcement(store, secret));
    CHECK(read == store);
    REQUIRE(with.has_value());
    CHECK(with->hex() == secret.hex());
    const std::string without = announcement(store, std::nullopt);
    CHECK(without.find(secret.hex()) == std::string::npos);
    CHECK_FALSE(parse_announcement(without).second.has_value());
  }
}

TEST_CASE("an announcement of something else is refused", "[net]") {
  for (const char* bad : {"", "1", "1,,4711,given", "1,a,0,given", "1,a,65536,given", "1,a,b,given",
                          "2,a,4711,given", "1,a,4711,given,more", "1,a,4711"})
    CHECK(error_of([&] { parse_announcement(bad); }).kind == ErrorKind::kPeer);
  CHECK(error_of([] { parse_announcement("1,a,4711,0123"); }).kind == ErrorKind::kConfig);
}

TEST_CASE("ranks with nothing set meet by the user's secret, each job by its own", "[net]") {
  const TemporaryDirectory home;
  const Environment environment = {{"HOME", home.path()}};
  RankIdentity first = rank_of_two(0);
  first.master_port = 0;
  const RendezvousPoint point = arrange_rendezvous(first, environment, soon());
  CHECK(point.listener.valid());
  RankIdentity second = rank_of_two(1);
  second.master_port = 0;
  CHECK(arrange_rendezvous(second, environment, soon()).secret.hex() == point.secret.hex());
  second.job = "another";
  CHECK(arrange_rendezvous(second, environment, soon()).secret.hex() != point.secret.hex());
}

TEST_CASE("a given secret is taken as it is", "[net]") {
  const std::string hex = Secret::generate().hex();
  const Environment environment = {{kSecretVariable, hex}};
  CHECK(arrange_rendezvous(rank_of_two(1), environment, soon()).secret.hex() == hex);
}

TEST_CASE("where nobody says on which host rank 0 is, the remedy is told", "[net]") {
  RankIdentity identity = rank_of_two(1);
  identity.master_addr = "";
  identity.launcher = LauncherKind::kOpenMpi;
  const Caught caught = error_of([&] { arrange_rendezvous(identity, {}, soon()); });
  CHECK(caught.kind == ErrorKind::kConfig);
  CHECK((caught.says("Open MPI") && caught.says("mpirun -x MASTER_ADDR")));
  identity.exchange = Exchange::kPmi;
  CHECK(error_of([&] { arrange_rendezvous(identity, {}, soon()); }).says("a rank's first program"));
}

TEST_CASE("a launcher's exchange that is closed leaves what the identity says", "[net]") {
  const TemporaryDirectory home;
  RankIdentity identity = rank_of_two(1);
  identity.exchange = Exchange::kPmi;
  const RendezvousPoint point =
      arrange_rendezvous(identity, {{"HOME", home.path()}, {"PMI_FD", "-1"}}, soon());
  CHECK(point.store == Endpoint{"127.0.0.1", kDefaultMasterPort});
  CHECK(point.secret.is_users());
}

TEST_CASE("this host has an address that it can listen on", "[net]") {
  CHECK(listen_tcp({own_address(), 0}).valid());
}
