#include "lib/tools/colltest/simulate/simulator.h"

#include <ctime>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/collective/algorithm/schedule.h"
#include "lib/tools/colltest/simulate/simulation_report.h"
#include "lib/tools/topology/read/cluster_file.h"
#include "tests/catch.h"
#include "tests/tools/topology/regular_host.h"

namespace gxp {
namespace {

// The links and ranks of the clusters below, in bytes per second and in seconds.
constexpr double kNvLink = 100e9;
constexpr double kNic = 10e9;
constexpr double kHop = 1e-6;       // latency of every link
constexpr double kOverhead = 3e-6;  // of every message
constexpr double kFold = 50e9;
constexpr double kBetweenHosts = 6 * kHop;  // GPU, switch, NIC, network, NIC, switch, GPU

struct Options {
  int hosts = 1;
  int gpus = 1;
  int nics = 1;
  NetworkDescription network = {.latency_s = kHop};
  double overhead_s = kOverhead;
};

Cluster make_cluster(const Options& options) {
  HostGroup group{.hosts = options.hosts,
                  .inside = make_host({.gpus = options.gpus,
                                       .nics = options.nics,
                                       .pcie_gb_per_s = 1000,
                                       .nvlink_gb_per_s = kNvLink / 1e9,
                                       .latencies = {kHop, kHop, kHop}})};
  for (Nic& nic : group.inside.nics) nic.gb_per_s = kNic / 1e9;
  return Cluster({.groups = {group},
                  .network = options.network,
                  .message_overhead_s = options.overhead_s,
                  .fold_gb_per_s = kFold / 1e9});
}

int no_rounds(const CallShape&) { return 0; }
uint64_t nothing(int, const CallShape&) { return 0; }

Algorithm algorithm_of(void (*run)(Primitives&, const CallShape&)) {
  return {{.sent = nothing}, "of the test", Collective::kBroadcast, run, no_rounds};
}

void chain(Primitives& comm, const CallShape& shape) {
  const Range all{0, shape.count};
  if (comm.rank() > 0) comm.recv(comm.rank() - 1, all);
  if (comm.rank() + 1 < comm.world_size()) comm.send(comm.rank() + 1, all);
}

// The first half of the ranks send to the second.
void shift_by_half(Primitives& comm, const CallShape& shape) {
  const int half = comm.world_size() / 2;
  if (comm.rank() < half) comm.send(comm.rank() + half, {0, shape.count});
  if (comm.rank() >= half) comm.recv(comm.rank() - half, {0, shape.count});
}

void fold_from_first(Primitives& comm, const CallShape& shape) {
  if (comm.rank() == 0) comm.send(1, {0, shape.count});
  if (comm.rank() == 1) comm.recv_and_fold(0, {0, shape.count});
}

// Sends what it overwrites with what it receives next.
void send_then_overwrite(Primitives& comm, const CallShape& shape) {
  const Range all{0, shape.count};
  if (comm.rank() == 0) comm.send(1, all);
  if (comm.rank() == 0) comm.recv(2, {0, 1});
  if (comm.rank() == 1) comm.recv(0, all);
  if (comm.rank() == 2) comm.send(0, {0, 1});
}

void wait_for_ever(Primitives& comm, const CallShape&) {
  if (comm.rank() == 1) comm.recv(0, {0, 1});
}

void send_too_much(Primitives& comm, const CallShape&) {
  if (comm.rank() == 0) comm.send(1, {0, 2});
  if (comm.rank() == 1) comm.recv(0, {0, 1});
}

void work_alone(Primitives& comm, const CallShape& shape) {
  comm.copy({0, shape.count / 2}, {shape.count / 2, shape.count / 2});
  comm.fold({0, shape.count / 2}, {shape.count / 2, shape.count / 2});
}

// Bytes, as elements of one byte in one segment each, unless said otherwise.
SimulationResult run(const Algorithm& algorithm, const Cluster& cluster, int ranks, size_t bytes,
                     size_t segment_bytes = size_t{1} << 40) {
  const auto gpus = place_ranks(cluster, ranks);
  const auto hosts = hosts_of_ranks(cluster, gpus);
  const CallShape shape{.world_size = ranks, .count = bytes, .hosts = hosts};
  return simulate(algorithm, shape, DType::kU8, cluster, gpus, {.segment_bytes = segment_bytes});
}

std::vector<int> hosts_for(int ranks, int per_host) {
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(rank / per_host);
  return hosts;
}

}  // namespace

TEST_CASE("a message takes its overheads, its latencies and its slowest link", "[simulator]") {
  const size_t bytes = GENERATE(1, 1000, 10'000'000);
  const Cluster cluster = make_cluster({.hosts = 2});
  const auto result = run(algorithm_of(chain), cluster, 2, bytes);
  CHECK(result.seconds == Approx(2 * kOverhead + kBetweenHosts + double(bytes) / kNic));
  CHECK(result.bytes_sent == std::vector<uint64_t>{bytes, 0});
  CHECK(result.messages_sent == std::vector<uint64_t>{1, 0});
}

TEST_CASE("a chain takes as many messages one after the other", "[simulator]") {
  const int ranks = GENERATE(1, 2, 5, 9);
  const Cluster cluster = make_cluster({.hosts = ranks});
  const double message = 2 * kOverhead + kBetweenHosts + 1e6 / kNic;
  CHECK(run(algorithm_of(chain), cluster, ranks, 1'000'000).seconds ==
        Approx((ranks - 1) * message).margin(1e-12));
}

TEST_CASE("folding one segment overlaps the transfer of the next", "[simulator]") {
  const Cluster cluster = make_cluster({.hosts = 2, .overhead_s = 0});
  const double first = kBetweenHosts;
  CHECK(run(algorithm_of(fold_from_first), cluster, 2, 1 << 20).seconds ==
        Approx(first + (1 << 20) / kNic + (1 << 20) / kFold));
  CHECK(run(algorithm_of(fold_from_first), cluster, 2, 1 << 20, 1 << 16).seconds ==
        Approx(first + (1 << 20) / kNic + (1 << 16) / kFold));
}

TEST_CASE("a ring on one switch takes its formula", "[simulator]") {
  const int ranks = GENERATE(2, 3, 8);
  const auto collective = GENERATE(Collective::kReduceScatter, Collective::kAllGather);
  const size_t bytes = 840'000;
  const Cluster cluster = make_cluster({.hosts = ranks});
  const double chunk = double(bytes) / ranks;
  const double step = 2 * kOverhead + kBetweenHosts + chunk / kNic +
                      (collective == Collective::kReduceScatter ? chunk / kFold : 0);
  const auto result = run(*find_algorithm("ring", collective), cluster, ranks, bytes);
  CHECK(result.seconds == Approx((ranks - 1) * step));
  CHECK(result.rank_seconds == std::vector<double>(size_t(ranks), result.rank_seconds[0]));
}

TEST_CASE("a ring through several hosts is as fast as its slow links", "[simulator]") {
  const Cluster cluster = make_cluster({.hosts = 4, .gpus = 8, .overhead_s = 0});
  const size_t bytes = 320'000'000;
  const double chunk = double(bytes) / 32;
  const auto result = run(*find_algorithm("ring", Collective::kAllGather), cluster, 32, bytes);
  CHECK(result.seconds == Approx(31 * chunk / kNic).epsilon(0.001));
  REQUIRE(!result.busiest.empty());
  CHECK(result.busiest[0].utilisation == Approx(1).epsilon(0.001));
}

TEST_CASE("messages that share a NIC share its bandwidth", "[simulator]") {
  const auto [gpus, nics] = GENERATE(table<int, int>({{1, 1}, {4, 4}, {4, 2}, {8, 1}}));
  CAPTURE(gpus, nics);
  const Cluster cluster = make_cluster({.hosts = 2, .gpus = gpus, .nics = nics, .overhead_s = 0});
  const auto result = run(algorithm_of(shift_by_half), cluster, 2 * gpus, 10'000'000, 1 << 16);
  CHECK(result.seconds == Approx(kBetweenHosts + gpus / nics * 1e7 / kNic).epsilon(1e-4));
  // Segments take turns, so nobody is done long before the others.
  for (const double end : result.rank_seconds) CHECK(end > 0.9 * result.seconds);
}

TEST_CASE("several rings over one NIC each get their part of it", "[simulator]") {
  const int channels = 4;
  const auto ring_time = [&](int nics) {
    const Cluster cluster =
        make_cluster({.hosts = 2, .gpus = channels, .nics = nics, .overhead_s = 0});
    return run(*find_algorithm("hierarchical", Collective::kAllReduce), cluster, 2 * channels,
               400'000'000, 1 << 20)
        .seconds;
  };
  // Between the hosts, GPU i of each exchanges a quarter: twice half of that, each way.
  CHECK(ring_time(1) - ring_time(4) == Approx(3 * 1e8 / kNic).epsilon(0.05));
}

TEST_CASE("oversubscription divides the bandwidth between leaves, not within", "[simulator]") {
  const double ratio = GENERATE(1.0, 2.0, 4.0);
  const auto time = [&](int hosts_per_leaf) {
    const Cluster cluster = make_cluster(
        {.hosts = 8,
         .network = {.latency_s = 0, .hosts_per_leaf = hosts_per_leaf, .oversubscription = ratio},
         .overhead_s = 0});
    return run(algorithm_of(shift_by_half), cluster, 8, 10'000'000, 1 << 16).seconds;
  };
  const double packet = 1e7 / 16 / kNic;  // for which the others' may make it wait
  CHECK(time(4) == Approx(1e7 / kNic * ratio).margin(packet));
  CHECK(time(8) == Approx(1e7 / kNic).margin(kBetweenHosts));
}

TEST_CASE("elements are not overwritten before they have arrived", "[simulator]") {
  const Cluster cluster = make_cluster({.hosts = 3, .overhead_s = 0});
  const auto result = run(algorithm_of(send_then_overwrite), cluster, 3, 1'000'000);
  CHECK(result.rank_seconds[2] < 0.1 * result.seconds);
  CHECK(result.rank_seconds[0] == Approx(kBetweenHosts + 1e6 / kNic));
}

TEST_CASE("work within a rank takes the rank's time", "[simulator]") {
  const auto result = run(algorithm_of(work_alone), make_cluster({}), 1, 1'000'000);
  CHECK(result.seconds == Approx(2 * 5e5 / kFold));
  CHECK(result.messages_sent == std::vector<uint64_t>{0});
}

TEST_CASE("every algorithm sends the bytes of its formula in the segments of the executor",
          "[simulator]") {
  const int ranks = GENERATE(1, 2, 3, 4, 6, 8, 13, 16);
  const size_t count = size_t(ranks) * size_t(GENERATE(0, 1, 577));
  const Cluster cluster = make_cluster({.hosts = 4, .gpus = 4});
  const auto gpus = place_ranks(cluster, ranks);
  const auto hosts = hosts_for(ranks, 4);
  const CallShape shape{.world_size = ranks, .count = count, .root = ranks / 2, .hosts = hosts};
  for (const Algorithm& algorithm : algorithms()) {
    CAPTURE(algorithm.name, to_string(algorithm.collective), ranks, count);
    const auto result =
        simulate(algorithm, shape, DType::kF64, cluster, gpus, {.segment_bytes = 512});
    const Schedule schedule = record_schedule(algorithm, shape);
    for (int rank = 0; rank < ranks; ++rank) {
      uint64_t messages = 0;
      for (const CollectiveStep& step : schedule[size_t(rank)]) {
        if (step.local || step.to == kNobody) continue;
        messages += step.token ? 1 : (step.leaving.count + 63) / 64;
      }
      CHECK(result.bytes_sent[size_t(rank)] == 8 * elements_sent(algorithm, rank, shape));
      CHECK(result.messages_sent[size_t(rank)] == messages);
    }
  }
}

TEST_CASE("a simulation gives the same result every time, whatever memory it may use",
          "[simulator]") {
  const Cluster cluster = make_cluster({.hosts = 4, .gpus = 4, .nics = 2});
  const auto gpus = place_ranks(cluster, 16);
  const auto hosts = hosts_for(16, 4);
  const CallShape shape{.world_size = 16, .count = 100'000, .hosts = hosts};
  const auto name = GENERATE("ring", "hierarchical", "direct");
  const Algorithm& algorithm = *find_algorithm(name, Collective::kAllReduce);
  const auto first = simulate(algorithm, shape, DType::kF32, cluster, gpus);
  const auto second = simulate(algorithm, shape, DType::kF32, cluster, gpus, {.steps_bytes = 0});
  CHECK(first.rank_seconds == second.rank_seconds);
  CHECK(first.link_bytes == second.link_bytes);
  CHECK(first.events == second.events);
}

TEST_CASE("fewer packets a message change its time little and its bytes not at all",
          "[simulator]") {
  const Cluster cluster = make_cluster({.hosts = 4, .gpus = 4, .nics = 2});
  const auto gpus = place_ranks(cluster, 16);
  const auto hosts = hosts_for(16, 4);
  const CallShape shape{.world_size = 16, .count = 10'000'000, .hosts = hosts};
  const Algorithm& algorithm = *find_algorithm("hierarchical", Collective::kAllReduce);
  const SimulationOptions all{.segment_bytes = 1 << 16, .max_packets = 1 << 20};
  const auto fine = simulate(algorithm, shape, DType::kF32, cluster, gpus, all);
  const auto coarse =
      simulate(algorithm, shape, DType::kF32, cluster, gpus, {.segment_bytes = 1 << 16});
  CHECK(coarse.events < fine.events / 4);
  CHECK(coarse.seconds == Approx(fine.seconds).epsilon(0.03));
  CHECK(coarse.bytes_sent == fine.bytes_sent);
  CHECK(coarse.messages_sent == fine.messages_sent);
  CHECK(coarse.link_bytes == fine.link_bytes);
}

namespace {

LinkClass shm_of(int ranks, double seconds_per_byte) {
  const auto curve = [&](double rate) { return CostCurve{{{1e3, 1e3 * rate}, {1e9, 1e9 * rate}}}; };
  LinkClass links{.transport = "shm", .ranks = ranks, .hosts = 1, .curves = {}};
  links.curves["hop"] = curve(seconds_per_byte / 2);
  links.curves["exchange"] = curve(seconds_per_byte);
  links.curves["fold"] = curve(seconds_per_byte / 4);
  links.curves["copy"] = curve(seconds_per_byte / 8);
  return links;
}

}  // namespace

TEST_CASE("over a profile a ring takes its exchanges and folds", "[simulator]") {
  const int ranks = GENERATE(2, 4, 8);
  const LinkClass links = shm_of(ranks, 1e-9);
  const CallShape shape{.world_size = ranks, .count = 8'000'000};
  const auto result = simulate(*find_algorithm("ring", Collective::kAllReduce), shape, DType::kU8,
                               FlatLinks{links});
  const double chunk = 8e6 / ranks;
  // To within one exchange, since the cores serve one rank after the other.
  CHECK(result.seconds >= 1.999 * (ranks - 1) * chunk * 1e-9);
  CHECK(result.seconds <= (ranks - 1) * chunk * 1e-9 * 2.25 + chunk * 1e-9);
}

TEST_CASE("over a profile one message alone takes a hop, and exchanges between hosts",
          "[simulator]") {
  const LinkClass inside = shm_of(4, 1e-9);
  const LinkClass between = shm_of(1, 1e-8);
  CallShape shape{.world_size = 2, .count = 1'000'000};
  CHECK(simulate(algorithm_of(chain), shape, DType::kU8, {inside, &between}).seconds ==
        Approx(0.5e-3));
  const std::vector<int> hosts = {0, 1};
  shape.hosts = hosts;
  CHECK(simulate(algorithm_of(chain), shape, DType::kU8, {inside, &between}).seconds ==
        Approx(10e-3));
}

TEST_CASE("the step times make a trace with a bar for each step", "[simulator]") {
  const Cluster cluster = make_cluster({.gpus = 3});
  const auto gpus = place_ranks(cluster, 3);
  const CallShape shape{.world_size = 3, .count = 9};
  const Algorithm& algorithm = *find_algorithm("ring", Collective::kAllGather);
  const auto result = simulate(algorithm, shape, DType::kF32, cluster, gpus, {.keep_steps = true});
  const auto trace = nlohmann::json::parse(to_chrome_trace(result));
  const auto& bars = trace["traceEvents"];
  const Schedule schedule = record_schedule(algorithm, shape);
  REQUIRE(bars.size() == 3 * schedule[0].size());
  CHECK(bars[0]["name"] == to_string(schedule[bars[0]["tid"]][0]));
  CHECK(bars.back()["ts"].get<double>() + bars.back()["dur"].get<double>() ==
        Approx(result.seconds * 1e6));
}

TEST_CASE("ranks need a GPU each", "[simulator]") {
  const Cluster cluster = make_cluster({.gpus = 3});
  const auto gpus = GENERATE(values<std::vector<int>>({{0}, {0, 0}, {0, 3}, {-1, 0}, {0, 1, 2}}));
  const CallShape shape{.world_size = 2, .count = 9};
  CHECK_THROWS_AS(simulate(algorithm_of(chain), shape, DType::kF32, cluster, gpus), Error);
}

TEST_CASE("an algorithm that is stuck or does not match is named", "[simulator]") {
  const auto [wrong, said] = GENERATE(table<void (*)(Primitives&, const CallShape&), std::string>(
      {{wait_for_ever, "rank 1 waits forever in 'receive [0, 1) from 0'"},
       {send_too_much, "rank 1 was sent more than it receives in 'receive [0, 1) from 0'"}}));
  try {
    run(algorithm_of(wrong), make_cluster({.gpus = 2}), 2, 2);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInternal);
    CHECK(std::string(error.what()) == "simulate of the test broadcast: " + said);
  }
}

TEST_CASE("4096 ranks of a hierarchical all-reduce take seconds", "[.long][simulator]") {
  const Cluster cluster(load_cluster(std::string(GXP_SOURCE_DIR) + "/examples/cluster.toml"));
  const std::clock_t start = std::clock();  // not the wall: others may be busy
  const auto result = run(*find_algorithm("hierarchical", Collective::kAllReduce), cluster, 4096,
                          size_t{1} << 30, 256u << 10);
  const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  WARN(result.events << " events in " << seconds << " s; simulated " << result.seconds << " s");
  CHECK(seconds < 10);
}

}  // namespace gxp
