// `gxp train --nnodes MIN:MAX`: hosts that go and come, here launchers of one host.
#include <csignal>

#include "lib/net/socket/socket.h"
#include "tests/cmd/hosts/elastic_hosts.h"

namespace gxp {
namespace {

// Listens there as soon as nobody else does.
Fd take_port(const Endpoint& endpoint) {
  for (const Deadline end = Deadline::after(std::chrono::seconds(20)); !end.expired();) {
    try {
      return listen_tcp(endpoint);
    } catch (const Error&) {
      // Somebody does.
    }
  }
  return Fd();
}

}  // namespace

TEST_CASE("a job goes on without a lost host, and with it when it comes back", "[cmd]") {
  ElasticHosts job;
  for (int host = 0; host < kMostHosts; ++host) job.start(host);
  job.await_steps(14);
  job.lose(3);
  job.await_steps(30);
  job.start(3);
  job.check_ends({"restart 1 of 3: host 3 was lost in step", ", on hosts 0, 1",
                  "another host has come; continuing from the checkpoint of step"});
}

TEST_CASE("a job goes on when a host that waits is lost, or the first one comes back", "[cmd]") {
  const int lost = GENERATE(0, 2);
  ElasticHosts job;
  for (int host = 0; host < 3; ++host) job.start(host);  // host 2 waits
  job.await_steps(14);
  job.lose(lost);
  if (lost == 2) {
    job.start(3);  // which waits as well
    job.await_steps(30);
  }
  job.start(lost);
  job.check_ends({lost == 0 ? "restart 1 of 3: host 0 was lost" : "another host has come"});
}

TEST_CASE("a job starts with the hosts that are there, and takes others in", "[cmd]") {
  ElasticHosts job;
  for (int host = 0; host < 2; ++host) job.start(host);
  job.await_steps(5);
  for (int host = 2; host < kMostHosts; ++host) job.start(host);
  job.check_ends({"another host has come; continuing from the checkpoint of step"});
}

TEST_CASE("a job goes on while another program has the port on which hosts join", "[cmd]") {
  ElasticHosts job;
  const Endpoint port = parse_endpoint(job.port.master());
  job.start(0);
  (void)connect_tcp(port, "host 0", Deadline::after(std::chrono::seconds(20)));  // it listens
  job.start(1);
  Fd taken = take_port(port);
  REQUIRE(taken.valid());
  job.await_steps(14);
  taken.reset();
  job.start(2);
  job.start(3);
  job.check_ends(
      {"no other host can join the job now: listen on 127.0.0.1", "another host has come"});
}

TEST_CASE("a job does not start with too few hosts, or with a batch of any size", "[cmd]") {
  ElasticHosts job;
  job.start(0);
  const Outcome alone = job.hosts[0]->end();
  CAPTURE(alone.err);
  CHECK(alone.code == 5);
  CHECK(contains(alone.err, "1 of 2 hosts have come within 4 s"));
  const auto [max_restarts, batch, text] = GENERATE(table<std::string, std::string, std::string>(
      {{"3", "0", "set train.global_batch"}, {"0", "4", "only by train's --max-restarts"}}));
  job.start(1, max_restarts, {"--set", "train.global_batch=" + batch});
  const Outcome refused = job.hosts[1]->end();
  CAPTURE(refused.err);
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, text));
}

}  // namespace gxp
