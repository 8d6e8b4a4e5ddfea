// `gxp train --status`, and the warnings about stragglers.
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "lib/base/host_name.h"
#include "lib/job/status/status_socket.h"
#include "tests/catch.h"
#include "tests/cmd/golden_run.h"

namespace gxp {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

// A run that takes so many steps that it lasts until the test is over.
struct LongRun {
  explicit LongRun(const std::vector<std::string>& more = {})
      : process(gxp_argv(run.train(arguments(more)))) {}
  ~LongRun() {
    for (const pid_t rank : processes_with(run.path("run.toml"))) ::kill(rank, SIGKILL);
  }

  static std::vector<std::string> arguments(const std::vector<std::string>& more) {
    return Arguments{
               "--nproc", "3", "--set", "train.steps=1000000", "--set", "train.log_every=1000000"} +
           more;
  }
  [[nodiscard]] std::string directory() const { return run.path("run/ckpt"); }
  [[nodiscard]] bool has_steps(size_t count) const {
    return poll_until([&] { return run.metrics().size() >= count; });
  }
  [[nodiscard]] json status() const {
    const Outcome outcome = run_gxp({"train", "--status", directory(), "--format", "json"});
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return json::parse(outcome.out);
  }
  [[nodiscard]] pid_t process_of(int rank) const {
    for (const pid_t process : processes_with(run.path("run.toml")))
      if (variable_of(process, "GXP_RANK") == std::to_string(rank)) return process;
    return 0;
  }

  GoldenRun run;
  Process process;
};

// Of five answers: the machine may be busy.
double quickest_answer(const std::string& directory) {
  double quickest = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    REQUIRE(ask_status(directory, Format::kJson).has_value());
    quickest = std::min(quickest, seconds_since(start));
  }
  return quickest;
}

}  // namespace

TEST_CASE("a run tells how far it is and what each rank does", "[cmd]") {
  const LongRun job;
  REQUIRE(job.has_steps(3));
  const json status = job.status();
  CAPTURE(status.dump());
  CHECK(status["schema"] == "gxp.train-status/1");
  CHECK((status["step"] >= 3 && status["steps"] == 1000000));
  for (const char* key : {"steps_per_s", "tokens_per_s", "eta_s", "loss", "host_peak_bytes"})
    CHECK(status[key] > 0);
  CHECK(status["since_step_s"] < 60);
  REQUIRE(status["ranks"].size() == 3);
  for (int rank = 0; rank < 3; ++rank) {
    const json& row = status["ranks"][rank];
    CHECK((row["rank"] == rank && row["host"] == host_name()));
    CHECK(row["process"] == job.process_of(rank));
    CHECK((row["host_peak_bytes"] > 1 << 20 && row["device_peak_bytes"] > 0));
    CHECK(std::ranges::count(std::vector<json>{"compute", "communication", "data"},
                             row["activity"]) == 1);
  }
  const Outcome text = run_gxp({"train", "--status", job.directory()});
  CHECK(contains(text.out, "tokens/s"));
  CHECK(quickest_answer(job.directory()) < 0.2);
}

TEST_CASE("only its own user can ask a run, and nothing is left of the socket", "[cmd]") {
  // With a path that is too long for a socket's address.
  const GoldenRun run;
  const std::string directory = run.path(std::string(120, 'd') + "/ckpt");
  const std::string socket = directory + "/.gxp.status";
  Process process(
      gxp_argv(run.train(LongRun::arguments({"--set", "checkpoint.dir=" + directory}))));
  REQUIRE(poll_until([&] { return run.metrics().size() >= 2; }));
  struct stat status = {};
  REQUIRE(::lstat(socket.c_str(), &status) == 0);
  CHECK((S_ISSOCK(status.st_mode) && (status.st_mode & 0777) == 0600));
  CHECK(ask_status(directory, Format::kText).has_value());
  process.signal(SIGTERM);
  CHECK(process.end().code == 128 + SIGTERM);
  CHECK(::lstat(socket.c_str(), &status) != 0);
}

TEST_CASE("a rank that is stopped is named while the job hangs", "[cmd]") {
  const LongRun job;
  REQUIRE(job.has_steps(20));
  poll_until([&] { return job.status()["ranks"][2]["process"].is_number(); });
  const pid_t stopped = job.process_of(2);
  REQUIRE(signal_rank(job.run.path("run.toml"), 2, SIGSTOP));
  REQUIRE(poll_until([&] { return job.status()["waiting"].is_string(); }));
  const json status = job.status();
  CAPTURE(status.dump());
  CHECK(status["waiting"].get<std::string>().starts_with("rank 2: it does not respond"));
  CHECK(status["ranks"][2]["activity"] == "not responding");
  CHECK((status["ranks"][2]["process"] == stopped && status["ranks"][2]["host"] == host_name()));
  CHECK(status["ranks"][0]["activity"] == "communication");
  CHECK(status["ranks"][0]["operation_s"] > 1);
  CHECK(quickest_answer(job.directory()) < 0.2);
}

TEST_CASE("where rank 0 is stopped, the question ends with its name", "[cmd]") {
  const LongRun job;
  REQUIRE(job.has_steps(3));
  const pid_t rank_0 = job.process_of(0);
  REQUIRE(signal_rank(job.run.path("run.toml"), 0, SIGSTOP));
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = run_gxp({"train", "--status", job.directory()});
  CHECK(seconds_since(start) < 4);
  CHECK(outcome.code == 5);
  CHECK(contains(outcome.err, "process " + std::to_string(rank_0) + ", which is stopped"));
}

TEST_CASE("where no run is, there is no status", "[cmd]") {
  const GoldenRun run;
  const std::string nowhere = run.path("nothing");
  const Outcome missing = run_gxp({"train", "--status", nowhere});
  CHECK((missing.code == 4 && contains(missing.err, "no such directory; give")));
  std::filesystem::create_directory(nowhere);
  CHECK(run_gxp({"train", "--status", nowhere, "--resume"}).code == 2);
  CHECK(run_gxp({"train", run.path("run.toml"), "--status", nowhere}).code == 2);
  const Outcome empty = run_gxp({"train", "--status", nowhere});
  CHECK(empty.code == 4);
  CHECK(contains(empty.err, "no run is there"));
  std::optional<LongRun> job(std::in_place);
  REQUIRE(job->has_steps(2));
  CHECK(signal_rank(job->run.path("run.toml"), 0, SIGKILL));  // which leaves its socket
  job->process.end();
  CHECK(std::filesystem::exists(job->directory() + "/.gxp.status"));
  CHECK(run_gxp({"train", "--status", job->directory()}).code == 4);
  const Outcome again = job->run.run({"--overwrite"});
  CAPTURE(again.err);
  CHECK(again.code == 0);
}

TEST_CASE("a rank that keeps the others waiting is told once", "[cmd]") {
  const int rank = GENERATE(0, 2);
  CAPTURE(rank);
  LongRun job({"--set", "train.valid_every=0"});
  REQUIRE(job.has_steps(20));
  ::usleep(500'000);  // the ranks have introduced themselves
  REQUIRE(signal_rank(job.run.path("run.toml"), rank, SIGSTOP));
  ::usleep(2'500'000);
  REQUIRE(signal_rank(job.run.path("run.toml"), rank, SIGCONT));
  const size_t steps = job.run.metrics().size();
  REQUIRE(job.has_steps(steps + 20));
  ::usleep(600'000);
  job.process.signal(SIGTERM);
  const std::string err = job.process.end().err;
  CAPTURE(err);
  const std::string start =
      "warn straggler: rank " + std::to_string(rank) + " on host " + host_name();
  const size_t at = err.find(start);
  REQUIRE(at != std::string::npos);
  const std::string line = err.substr(at, err.find('\n', at) - at);
  CHECK((contains(line, " for 2.") || contains(line, " for 3.")));
  CHECK(err.find("straggler", at + start.size()) == std::string::npos);
}

}  // namespace gxp
