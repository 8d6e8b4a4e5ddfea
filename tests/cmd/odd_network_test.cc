// Networks as they are elsewhere: without IPv4, with name servers that are silent; and patience
// that no clock can count.
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/cmd/run_gxp.h"

namespace gxp {
namespace {

using Arguments = std::vector<std::string>;

const Surroundings kOddSecret{.environment = {{"GXP_JOB_SECRET", std::string(64, 'c')}},
                              .file_bytes = 0};

// A shell in a network and mounts of its own; "$0" there is gxp.
Outcome run_elsewhere(const std::string& script) {
  return Process({"unshare", "-nm", "sh", "-ec", script, GXP_BINARY}, kOddSecret).end();
}

bool cannot_make_networks() {
  if (geteuid() == 0 && run_elsewhere("ip link set lo up").code == 0) return false;
  WARN("skipped: this needs root, unshare and ip");
  return true;
}

}  // namespace

TEST_CASE("a patience that is no number, or beyond all clocks, is refused", "[cmd]") {
  const std::string text = GENERATE("nan", "inf", "1e10", "0", "-1", "3s");
  CAPTURE(text);
  const Outcome outcome = run_gxp({"allreduce-test", "--nproc", "2", "--join-timeout", text});
  CHECK(outcome.code == 2);
  CHECK(contains(outcome.err, "--join-timeout"));
}

TEST_CASE("ranks meet where there is no IPv4 at all", "[cmd]") {
  if (cannot_make_networks()) return;
  const Outcome outcome = run_elsewhere(
      "ip link set lo up; ip addr del 127.0.0.1/8 dev lo;"
      "ip link add cable type veth peer name end; ip link set cable up; ip link set end up;"
      "ip addr add fd00::1/64 dev cable nodad;"
      "host() { \"$0\" allreduce-test -b 64 -e 64 -n 2 -w 0 --transport tcp"
      " --streams 1 --socket-buffer-bytes 262144 --join-timeout 10"
      " --nnodes 2 --node-rank $1 --master [fd00::1]:29500; };"
      "host 1 & host 0; wait $!");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
}

TEST_CASE("a silent name server takes no longer than the patience", "[cmd]") {
  if (cannot_make_networks()) return;
  const auto start = Deadline::Clock::now();
  // Nobody has that address.
  const Outcome outcome = run_elsewhere(
      "ip link set lo up;"
      "ip link add cable type veth peer name end; ip link set cable up; ip link set end up;"
      "ip addr add 192.0.2.1/24 dev cable;"
      "ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev cable; echo nameserver 192.0.2.2 > "
      "/tmp/gxp-resolv.$$;"
      "mount --bind /tmp/gxp-resolv.$$ /etc/resolv.conf; rm /tmp/gxp-resolv.$$;"
      "exec \"$0\" allreduce-test --nnodes 2 --node-rank 1 --master nowhere.test:29500"
      " --join-timeout 0.3");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 5);
  CHECK(contains(outcome.err, "the name servers do not answer"));
  CHECK(Deadline::Clock::now() - start < std::chrono::seconds(4));  // glibc alone: 10 s
}

}  // namespace gxp
