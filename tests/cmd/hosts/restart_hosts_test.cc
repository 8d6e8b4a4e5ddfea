// `gxp train --max-restarts` on several hosts: two launchers, here of one host.
#include <array>
#include <csignal>
#include <filesystem>
#include <memory>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"
#include "tests/cmd/reserved_port.h"

namespace gxp {
namespace {

constexpr size_t kStepsOnHosts = 300;  // so many that no run ends before a signal comes

class TwoHosts {
 public:
  explicit TwoHosts(Arguments more = {"--max-restarts", "3"}) : more_(std::move(more)) {
    for (int host = 0; host < 2; ++host) start(host);
  }

  void start(int host, size_t file_bytes = 0) {
    const Arguments arguments =
        run.train({"--nproc", "2", "--nnodes", "2", "--node-rank", std::to_string(host), "--master",
                   port_.master(), "--set", "train.steps=" + std::to_string(kStepsOnHosts), "--set",
                   "checkpoint.every=10"});
    launchers[host] = std::make_unique<Process>(
        gxp_argv(arguments + more_), Surroundings{.environment = {}, .file_bytes = file_bytes});
  }

  void await_steps(size_t steps) const {
    if (poll_until([&] { return run.metrics().size() >= steps; })) return;
    for (const auto& launcher : launchers) launcher->signal(SIGTERM);
    FAIL("no step " << steps << ": " << launchers[0]->end().err << launchers[1]->end().err);
  }
  [[nodiscard]] bool kill_rank(int rank, int signal = SIGKILL) const {
    return signal_rank(run.path("run.toml"), rank, signal);
  }

  GoldenRun run;
  std::array<std::unique_ptr<Process>, 2> launchers;

 private:
  Arguments more_;
  ReservedPort port_;
};

const std::string& weights_of_four() {
  static const std::string weights = [] {
    const GoldenRun run;
    REQUIRE(
        run.run({"--nproc", "4", "--set", "train.steps=" + std::to_string(kStepsOnHosts)}).code ==
        0);
    return run.weights();
  }();
  return weights;
}

void check_both_end_well(TwoHosts& hosts, const std::string& text) {
  for (const auto& launcher : hosts.launchers) {
    const Outcome outcome = launcher->end();
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    CHECK(contains(outcome.err, text));
  }
  CHECK(hosts.run.metrics().size() == kStepsOnHosts);
  CHECK(hosts.run.weights() == weights_of_four());
}

}  // namespace

TEST_CASE("all hosts start again when a rank of one dies", "[cmd]") {
  const auto [rank, steps] = GENERATE(table<int, size_t>({{0, 14}, {3, 14}, {2, 3}}));
  TwoHosts hosts;
  hosts.await_steps(steps);
  REQUIRE(hosts.kill_rank(rank));
  check_both_end_well(hosts, "gxp warn restart 1 of 3: rank " + std::to_string(rank) +
                                 " was killed by signal 9 (SIGKILL) in step ");
}

TEST_CASE("the other hosts wait for one that was lost", "[cmd]") {
  const int host = GENERATE(0, 1);
  TwoHosts hosts;
  hosts.await_steps(14);
  hosts.launchers[host]->signal(SIGKILL);
  CHECK(hosts.launchers[host]->end().code == 128 + SIGKILL);
  hosts.start(host);
  check_both_end_well(hosts, "gxp warn restart 1 of 3: host " + std::to_string(host) + " was lost");
}

TEST_CASE("no host starts again where one of them may not", "[cmd]") {
  SECTION("all are told to stop") {
    TwoHosts hosts;
    hosts.await_steps(14);
    for (const auto& launcher : hosts.launchers) launcher->signal(SIGTERM);
    for (const auto& launcher : hosts.launchers) CHECK(launcher->end().code == 128 + SIGTERM);
  }
  SECTION("a rank of one host fails by itself") {
    TwoHosts hosts;
    hosts.launchers[1] = nullptr;
    hosts.start(1, 3000);  // of its files, the checkpoint's is the first
    const Outcome first = hosts.launchers[0]->end(), second = hosts.launchers[1]->end();
    CAPTURE(first.err, second.err);
    CHECK(first.code == 5);
    CHECK(second.code == 4);
    CHECK_FALSE(contains(first.err + second.err, "restart 1"));
  }
  SECTION("one does not come back") {
    TwoHosts hosts({"--max-restarts", "3", "--join-timeout", "3"});
    hosts.await_steps(14);
    hosts.launchers[1]->signal(SIGKILL);
    const Outcome outcome = hosts.launchers[0]->end();
    CAPTURE(outcome.err);
    CHECK(outcome.code == 5);
    CHECK(contains(outcome.err, "gxp error no restart: "));
  }
  SECTION("the last restart is used up") {
    TwoHosts hosts({"--max-restarts", "1"});
    for (const size_t steps : {14, 24}) {
      hosts.await_steps(steps);
      REQUIRE(hosts.kill_rank(3));
    }
    for (const auto& launcher : hosts.launchers) {
      const Outcome outcome = launcher->end();
      CHECK(outcome.code == 5);
      CHECK(contains(outcome.err, "gxp warn no restart: all 1 restarts are used up"));
    }
  }
}

}  // namespace gxp
