// Whole programs next to people who do not know the secret: at the door, and on the line.
#include <string>
#include <vector>

#include "lib/net/socket/authenticate.h"
#include "lib/net/socket/socket.h"
#include "tests/catch.h"
#include "tests/cmd/reserved_port.h"
#include "tests/cmd/run_gxp.h"
#include "tests/relay.h"

namespace gxp {
namespace {

const Surroundings kIntruderSecret{.environment = {{"GXP_JOB_SECRET", std::string(64, 'b')}},
                                   .file_bytes = 0};

// One of two hosts, with a rank each that talk TCP.
Arguments host(int index, const std::string& master, const std::string& iterations) {
  return gxp_argv({"allreduce-test",
                   "-b",
                   "64",
                   "-e",
                   "64",
                   "-n",
                   iterations,
                   "-w",
                   "0",
                   "--transport",
                   "tcp",
                   "--set",
                   "comm.streams=1",
                   "--set",
                   "comm.socket_buffer_bytes=262144",
                   "--nnodes",
                   "2",
                   "--node-rank",
                   std::to_string(index),
                   "--master",
                   master});
}

// The same with few descriptors.
Arguments with_descriptors(int count, const Arguments& command) {
  return Arguments{"sh", "-c", "ulimit -n " + std::to_string(count) + "; exec \"$@\"", "sh"} +
         command;
}

}  // namespace

TEST_CASE("strangers at rank 0's door change nothing, with few descriptors", "[cmd]") {
  const ReservedPort port;
  const Endpoint door = parse_endpoint(port.master());
  Process first(with_descriptors(128, host(0, port.master(), "2")), kIntruderSecret);
  std::vector<Fd> strangers;
  for (int i = 0; i < 200; ++i)
    strangers.push_back(connect_tcp(door, "rank 0", Deadline::after(std::chrono::seconds(20))));
  Process second(host(1, port.master(), "2"), kIntruderSecret);
  const Outcome outcome = first.end();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(second.end().code == 0);
  CHECK(contains(outcome.err, "payload over TCP: authenticated"));
}

TEST_CASE("a relay that alters one byte ends both ranks, and both say why", "[cmd]") {
  const ReservedPort port;
  const RelayDirection way = GENERATE(RelayDirection::kToServer, RelayDirection::kToClient);
  const uint64_t at = Handshake::kHelloBytes + Handshake::kProofBytes + 300;
  Process first(host(0, port.master(), "1000000"), kIntruderSecret);
  const Relay relay(parse_endpoint(port.master()), meddle_at(way, at));
  Process second(host(1, to_string(relay.endpoint()), "1000000"), kIntruderSecret);
  for (Process* process : {&first, &second}) {
    const Outcome outcome = process->end();
    CAPTURE(outcome.err);
    CHECK(outcome.code == 5);
    CHECK(contains(outcome.err, "was tampered with or damaged in transit"));
  }
}

}  // namespace gxp
