// Networks as they are elsewhere: without IPv4, with name servers that are silent; and patience
// that no clock can count.
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/cmd/run_gxp.h"

namespace gxp {
namespace {

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

// In the words of either shell.
bool lacks_nft(const std::string& said) {
  return contains(said, "nft: not found") || contains(said, "nft: command not found");
}

// What a bash says to whom $HOSTS is tests/launchers/hosts; nothing: none can be made.
std::optional<std::string> said_on_two_hosts(const std::string& script) {
  if (cannot_make_networks()) return std::nullopt;
  Surroundings surroundings = kOddSecret;
  surroundings.environment["GXP"] = GXP_BINARY;
  const Outcome outcome =
      Process({GXP_SOURCE_DIR "/tests/launchers/hosts", "bash", "-c", script}, surroundings).end();
  const std::string said = outcome.out + outcome.err;
  if (outcome.code != 125 && !lacks_nft(said)) return said;
  WARN("skipped: this needs nft, and what tests/launchers/hosts needs");
  return std::nullopt;
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
      " --set comm.streams=1 --set comm.socket_buffer_bytes=262144 --join-timeout 10"
      " --nnodes 2 --node-rank $1 --master [fd00::1]:29500; };"
      "host 1 & host 0; wait $!");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
}

TEST_CASE("on a slow link ranks meet without trying settings out", "[cmd]") {
  if (cannot_make_networks()) return;
  const Outcome outcome = run_elsewhere(
      "ip link set lo mtu 1500 up; tc qdisc add dev lo root tbf rate 10mbit burst 32k latency "
      "400ms;"
      "exec \"$0\" allreduce-test --nproc 2 -b 64 -e 64 -n 2 -w 0 --transport tcp");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.err, "too slow to tune; 1 connection per pair"));
}

TEST_CASE("ranks that may listen at some ports only meet there", "[cmd]") {
  if (cannot_make_networks()) return;
  // All else is blocked, as by a firewall.
  const Outcome outcome = run_elsewhere(
      "ip link set lo up;"
      "nft add table inet f; nft add chain inet f i '{ type filter hook input priority 0; policy "
      "drop; }';"
      "nft add rule inet f i ct state established accept;"
      "nft add rule inet f i tcp dport '{ 29500, 30000-30002 }' accept;"
      "ip addr add 192.0.2.1/24 dev lo;"
      "host() { \"$0\" allreduce-test -b 64 -e 64 -n 2 -w 0 --nnodes 2 --node-rank $1"
      " --master 192.0.2.1:29500 --join-timeout 5 --transport tcp --set comm.port_range=$2; };"
      "host 1 30000-30002 & host 0 30000-30002; wait $!");
  CAPTURE(outcome.err);
  if (lacks_nft(outcome.err)) {
    WARN("skipped: this needs nft");
    return;
  }
  CHECK(outcome.code == 0);
}

TEST_CASE("a firewall that lets only the master port through is told by both hosts", "[cmd]") {
  const auto said = said_on_two_hosts(
      "\"$HOSTS\" on all sh -c 'nft add table inet f || exit 77;"
      "nft add chain inet f i \"{ type filter hook input priority 0; policy drop; }\";"
      "nft add rule inet f i ct state established accept; nft add rule inet f i iif lo accept;"
      "nft add rule inet f i tcp dport 29500 accept; exec \"$GXP\" allreduce-test -b 64 -e 64 -n 2"
      " --nnodes 2 --node-rank $HOST_INDEX --master host0:29500 --join-timeout 3'");
  if (!said) return;
  CAPTURE(*said);
  CHECK(contains(*said, "host0: gxp[rank 0] error rank 1: connect to rank 0 at host0:"));
  CHECK(contains(*said, "host1: gxp[rank 1] error connect to rank 0 at host0:"));
  CHECK(contains(*said, "a firewall may pass only that port"));
  CHECK(contains(*said, "comm.port_range"));
}

TEST_CASE("packets that are lost for their size are told by both hosts, by name", "[cmd]") {
  const auto said = said_on_two_hosts(
      "nft add table bridge m || exit 77;"
      "nft add chain bridge m f '{ type filter hook forward priority 0; }';"
      "nft add rule bridge m f meta length gt 600 drop;"
      "\"$HOSTS\" on all sh -c 'exec \"$GXP\" allreduce-test -b 64 -e 64 -n 2"
      " --nnodes 2 --node-rank $HOST_INDEX --master host0:29500 --join-timeout 4'");
  if (!said) return;
  CAPTURE(*said);
  CHECK(contains(*said, "host0: gxp[rank 0] error rank 1: "));
  CHECK(contains(*said, "host1: gxp[rank 1] error "));
  CHECK(contains(*said, "do packets of 1500 B (the MTU) reach it?"));
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
  CHECK(Deadline::Clock::now() - start < std::chrono::seconds(10));  // what glibc alone takes
}

}  // namespace gxp
