// Launchers of one host each that make up a job of `gxp train --nnodes MIN:MAX`.
#pragma once

#include <array>
#include <cmath>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"
#include "tests/cmd/reserved_port.h"

namespace gxp {

inline constexpr int kMostHosts = 4;

class ElasticHosts {
 public:
  // Powers of two train to the same bits; three cannot share a batch of 4 rows, but one of 12.
  explicit ElasticHosts(int batch = 4, const std::string& deterministic = "any-world-size")
      : settings_({"--set", "train.steps=400", "--set", "train.grad_accum=1", "--set",
                   "train.global_batch=" + std::to_string(batch), "--set",
                   "train.deterministic=" + deterministic}) {}
  void start(int host, const std::string& max_restarts = "3", const Arguments& more = {}) {
    const Arguments place = {
        "--nnodes",       nnodes,    "--node-rank", std::to_string(host), "--master",
        port.master(),    "--nproc", "1",           "--max-restarts",     max_restarts,
        "--join-timeout", "4",       "--set",       "checkpoint.every=10"};
    hosts[size_t(host)] = std::make_unique<Process>(gxp_argv(run.train(settings_ + place + more)));
  }
  void lose(int host) {
    hosts[size_t(host)]->signal(SIGKILL);
    CHECK(hosts[size_t(host)]->end().code == 128 + SIGKILL);
    hosts[size_t(host)].reset();
  }
  void await_steps(size_t steps) {
    const bool come = poll_until([&] { return run.metrics().size() >= steps; });
    if (!come) hosts[0]->signal(SIGTERM);
    INFO((come ? "" : hosts[0]->end().err));
    REQUIRE(come);
  }
  // All end well, host 0 has said each of `texts`, and all is as in a run in peace: the losses, and
  // the weights where the numbers of ranks are powers of two.
  void check_ends(const Arguments& texts, bool has_equal_weights = true) {
    for (auto& host : hosts) {
      if (!host) continue;
      const Outcome outcome = host->end();
      CAPTURE(outcome.err);
      CHECK(outcome.code == 0);
      for (const std::string& text : host == hosts[0] ? texts : Arguments{})
        CHECK(contains(outcome.err, text));
    }
    const GoldenRun alone;
    REQUIRE(alone.run(settings_).code == 0);
    const auto steps = run.metrics(), wanted = alone.metrics();
    REQUIRE(steps.size() == 400);
    for (size_t i = 0; i < steps.size(); ++i)
      CHECK(std::abs(steps[i]["loss"].get<double>() - wanted[i]["loss"].get<double>()) < 1e-5);
    if (has_equal_weights) CHECK(run.weights() == alone.weights());
  }

  GoldenRun run;
  ReservedPort port;
  std::string nnodes = "2:4";
  std::array<std::unique_ptr<Process>, kMostHosts> hosts;

 private:
  Arguments settings_;
};

}  // namespace gxp
