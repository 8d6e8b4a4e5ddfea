// gxp train on several hosts: network namespaces, whose kernel counts what crosses the cables.
#include <unistd.h>

#include <sstream>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"

namespace gxp {
namespace {
using nlohmann::json;

constexpr int kRanks = 2;  // of a host

Arguments on_hosts(int hosts, const Arguments& command) {
  return Arguments{std::string(GXP_SOURCE_DIR) + "/bench/hosts.sh",
                   "--hosts",
                   std::to_string(hosts),
                   "--ranks",
                   std::to_string(kRanks),
                   "--count"} +
         command;
}

bool can_make_hosts() {
  return geteuid() == 0 && Process(on_hosts(1, {"--plain", "true"})).end().code == 0;
}

// The numbers in "host 0 sent 1234 bytes", for each host.
std::vector<int64_t> os_counts(const std::string& err) {
  std::vector<int64_t> counts;
  std::istringstream lines(err);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(" sent ");
    if (line.starts_with("host ") && at != std::string::npos)
      counts.push_back(std::stoll(line.substr(at + 6)));
  }
  return counts;
}

// `codec`: a setting.
const std::string kNoCodec = "comm.codec=none";
Arguments settings(const std::string& strategy, const std::string& codec) {
  return set_all({"comm.profile=builtin", "comm.streams=1", "comm.socket_buffer_bytes=262144",
                  "model.init=normal", "model.hidden=128", "parallel.strategy=" + strategy, codec});
}

std::vector<int64_t> sent_in_steps(const GoldenRun& run, int hosts, const std::string& strategy,
                                   int steps, const std::string& codec = kNoCodec) {
  const Arguments train =
      gxp_argv(run.train({"--overwrite", "--set", "train.steps=" + std::to_string(steps)})) +
      settings(strategy, codec);
  const Outcome outcome = Process(on_hosts(hosts, train)).end();
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return os_counts(outcome.err);
}

json plan(const GoldenRun& run, int hosts, const std::string& strategy,
          const std::string& codec = kNoCodec) {
  return json::parse(
      run_gxp(Arguments{"shard-plan", run.path("run.toml"), "--nproc", std::to_string(kRanks),
                        "--nnodes", std::to_string(hosts), "--gflops", "50", "--format", "json"} +
              settings(strategy, codec))
          .out);
}

// Gradients of a shard, summed over the replicas: 2 (R - 1) / R of its bytes from each.
double formula(const json& plan, int hosts) {
  double elements = 0;
  for (const json& unit : plan["units"]) elements += unit["elements"].get<double>();
  return 4 * elements / kRanks * 2 * (hosts - 1) / hosts;
}

TEST_CASE(
    "hybrid sharding sends between hosts what its plan says, counted by the transport and by "
    "the OS",
    "[cmd]") {
  if (!can_make_hosts()) {
    WARN("skipped: this user may not make network namespaces (root, iproute2 and util-linux)");
    return;
  }
  const std::string strategy = GENERATE("hybrid_shard", "hybrid_shard_zero2");
  const int hosts = GENERATE(2, 3);
  CAPTURE(strategy, hosts);
  const GoldenRun run;
  const json planned = plan(run, hosts, strategy);
  const std::vector<int64_t> few = sent_in_steps(run, hosts, strategy, 2);
  const std::vector<int64_t> many = sent_in_steps(run, hosts, strategy, 12);
  const json& of_ranks = planned["wire_bytes_between_hosts_of_ranks"];
  CHECK(run.metrics().back()["wire_bytes_between_hosts"] == of_ranks[0]);
  REQUIRE(many.size() == size_t(hosts));
  double all = 0;
  for (size_t host = 0; host < many.size(); ++host) {
    const double crossing = of_ranks[2 * host].get<double>() + of_ranks[2 * host + 1].get<double>();
    all += crossing;
    CAPTURE(host, crossing, few[host], many[host]);
    CHECK(double(many[host]) >= 12 * crossing);
    // The first two hosts also probe their link, with some MB more or less. Headers and
    // acknowledgements are few.
    if (host >= 2) CHECK(double(many[host] - few[host]) == Approx(10 * crossing).epsilon(0.03));
  }
  // Among three, what one rank has folded for another travels once more.
  const double least = kRanks * hosts * formula(planned, hosts);
  CHECK(all == Approx(least).epsilon(hosts == 2 ? 0.0001 : 0.03));
}

TEST_CASE("with a codec two hosts send what the plan says, a part of what they send without",
          "[cmd]") {
  if (!can_make_hosts()) {
    WARN("skipped: this user may not make network namespaces (root, iproute2 and util-linux)");
    return;
  }
  const auto [strategy, setting] =
      GENERATE(table<std::string, std::string>({{"ddp", "comm.codec="},
                                                {"zero2", "comm.codec="},
                                                {"hybrid_shard", "comm.codec="},
                                                {"zero3", "comm.gather_codec="}}));
  CAPTURE(strategy, setting);
  const GoldenRun run;
  const auto between_hosts = [&, strategy = strategy, setting = setting](const std::string& name) {
    const std::string codec = setting + name;
    const json of_ranks = plan(run, 2, strategy, codec)["wire_bytes_between_hosts_of_ranks"];
    (void)sent_in_steps(run, 2, strategy, 3, codec);
    CHECK(run.metrics().back()["wire_bytes_between_hosts"] == of_ranks[0]);
    double all = 0;
    for (const json& bytes : of_ranks) all += bytes.get<double>();
    return all;
  };
  CHECK(between_hosts("int4") < between_hosts("int8"));
  CHECK(between_hosts("int8") < 0.75 * between_hosts("none"));
}

}  // namespace
}  // namespace gxp
