// `checkpoint.replica = "neighbour"`: jobs that lose ranks or hosts and go on from memory.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/cmd/hosts/elastic_hosts.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

// In a directory of the test's, so that what is left there can be seen.
class ReplicaMemory {
 public:
  [[nodiscard]] Arguments settings(const std::string& more = "checkpoint.every=0") const {
    return {"--set", "checkpoint.replica=neighbour",
            "--set", "checkpoint.replica_every=5",
            "--set", "checkpoint.replica_dir=" + directory_.path(),
            "--set", more};
  }
  [[nodiscard]] bool is_empty() const { return fs::is_empty(directory_.path()); }
  [[nodiscard]] std::string path() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("a job whose rank dies goes on from the replicas, without a checkpoint", "[cmd]") {
  const auto strategy = GENERATE("ddp", "zero3");
  const Arguments settings = {"--nproc", "3",
                              "--set",   "train.steps=120",
                              "--set",   std::string("parallel.strategy=") + strategy};
  const ReplicaMemory memory;
  const GoldenRun run;
  Process launcher(
      gxp_argv(run.train(settings + Arguments{"--max-restarts", "2"} + memory.settings())));
  for (const int rank : {1, 0}) {
    REQUIRE(poll_until([&] { return run.metrics().size() >= (rank == 1 ? 13 : 40); }));
    REQUIRE(signal_rank(run.path("run.toml"), rank, SIGKILL));
  }
  const Outcome outcome = launcher.end();
  CAPTURE(strategy, outcome.err);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.err, "continuing from replicas of step"));
  CHECK(contains(outcome.err, "resumed from the replica of step"));
  CHECK(run.metrics().size() == 120);
  CHECK(memory.is_empty());
  const GoldenRun alone;
  REQUIRE(alone.run(settings).code == 0);
  CHECK(run.weights() == alone.weights());
}

TEST_CASE("a job goes on from replicas without a lost host, and with it again", "[cmd]") {
  const ReplicaMemory memory;
  ElasticHosts job(12, "world-size");
  for (int host = 0; host < kMostHosts; ++host) job.start(host, "3", memory.settings());
  job.await_steps(14);
  job.lose(3);
  job.await_steps(30);
  job.start(3, "3", memory.settings());
  job.check_ends(
      {"restart 1 of 3: host 3 was lost in step", "continuing from replicas of step",
       "resumed from the replica of step", ", on hosts 0, 1, 2", "another host has come"},
      false);
  CHECK(memory.is_empty());
}

// Before the others have noticed, while they wait for the lost host, and while their ranks start.
TEST_CASE("a job that shrinks loses a rank or another host meanwhile, and goes on", "[cmd]") {
  const auto [delay, is_host] = GENERATE(std::pair(std::chrono::milliseconds(600), true),
                                         std::pair(std::chrono::milliseconds(5), false),
                                         std::pair(std::chrono::milliseconds(1050), true));
  CAPTURE(delay.count(), is_host);
  const ReplicaMemory memory;
  ElasticHosts job(12, "world-size");
  for (int host = 0; host < kMostHosts; ++host) job.start(host, "5", memory.settings());
  job.await_steps(14);
  job.lose(3);
  std::this_thread::sleep_for(delay);
  if (is_host)
    job.lose(1);
  else
    REQUIRE(poll_until([&] { return signal_rank(job.run.path("run.toml"), 1, SIGKILL); }));
  job.check_ends(
      {"continuing from replicas of step", is_host ? ", on hosts 0, 2" : ", on hosts 0, 1, 2"},
      false);
}

// Three hosts cannot share a batch of 4 rows. The lost one's part is with host 0, that of host 2
// with it alone.
TEST_CASE("a host that waits gives its replicas to those that go on", "[cmd]") {
  const ReplicaMemory memory;
  ElasticHosts job;
  for (int host = 0; host < kMostHosts; ++host) job.start(host, "3", memory.settings());
  job.await_steps(14);
  job.lose(3);
  job.check_ends({"restart 1 of 3: host 3 was lost", "on hosts 0, 1",
                  "host 2 waits, and has given its replicas", "resumed from the replica of step"});
}

TEST_CASE("a spare host takes the place of a lost one", "[cmd]") {
  const ReplicaMemory memory;
  ElasticHosts job;
  job.nnodes = "2";
  for (int host = 0; host < 3; ++host)
    job.start(host, "3", memory.settings() + Arguments{"--spares", "1"});
  job.await_steps(14);
  job.lose(1);
  job.check_ends({"restart 1 of 3: host 1 was lost", "on hosts 0, 2"});
}

TEST_CASE("a job that has lost a part of its replicas goes on from a checkpoint", "[cmd]") {
  const ReplicaMemory memory;
  ElasticHosts job;
  for (int host = 0; host < kMostHosts; ++host)
    job.start(host, "3", memory.settings("checkpoint.every=100"));
  job.await_steps(112);
  for (const int host : {2, 3}) job.hosts[size_t(host)]->signal(SIGSTOP);
  for (const int host : {2, 3}) job.lose(host);
  job.check_ends({"is not whole: no host has the part of rank 2",
                  "step-00000100 (written by 4 ranks, now 2)"});
}

TEST_CASE("replicas that nobody could read, or that have no room, are refused", "[cmd]") {
  const GoldenRun run;
  const ReplicaMemory memory;
  const auto refused = [&](const Arguments& more, int code, const std::string& text) {
    const Outcome outcome = run.run(memory.settings() + more);
    CAPTURE(outcome.err);
    CHECK(outcome.code == code);
    CHECK(contains(outcome.err, text));
    CHECK(memory.is_empty());
  };
  refused({"--nproc", "2"}, 2, "give --max-restarts");
  refused({"--nproc", "2", "--max-restarts", "1", "--set", "checkpoint.replica_dir=/no/such"}, 4,
          "make a directory for replicas in /no/such (checkpoint.replica_dir)");
  refused({"--nproc", "2", "--max-restarts", "1", "--set", "checkpoint.dir="}, 2, "checkpoint.dir");
}

}  // namespace gxp
