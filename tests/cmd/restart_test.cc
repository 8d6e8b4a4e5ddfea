// `gxp train --max-restarts`: a run that loses ranks ends with the weights of one that loses none.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <random>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"
#include "tests/cmd/reserved_port.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

constexpr int kAllSteps = 300;  // so many that no run ends before a signal comes

Arguments restarting(const std::string& restarts, const Arguments& more = {}) {
  return Arguments{"--nproc",        "3",
                   "--set",          fmt::format("train.steps={}", kAllSteps),
                   "--set",          "checkpoint.every=10",
                   "--max-restarts", restarts} +
         more;
}

const std::string& undisturbed_weights() {
  static const std::string weights = [] {
    const GoldenRun run;
    REQUIRE(run.run(restarting("0")).code == 0);
    return run.weights();
  }();
  return weights;
}

bool has_partial_checkpoint(const GoldenRun& run) {
  std::error_code none;
  return std::ranges::any_of(
      fs::directory_iterator(run.path("run/ckpt"), none),
      [](const auto& entry) { return entry.path().filename().string().ends_with(".partial"); });
}

// When a rank gets its signal.
enum class Moment { kStartup, kFirstSteps, kAfterCheckpoint, kWhileSaving };

bool await(const GoldenRun& run, Moment moment) {
  const auto steps = [&] { return run.metrics().size(); };
  switch (moment) {
    case Moment::kStartup:
      return true;
    case Moment::kFirstSteps:
      return poll_until([&] { return steps() >= 3; });
    case Moment::kAfterCheckpoint:
      return poll_until([&] { return steps() >= 24; });
    case Moment::kWhileSaving:
      return poll_until([&] { return has_partial_checkpoint(run); });
  }
  return false;
}

int occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Of each step, once and in order.
bool has_all_metrics(const GoldenRun& run, size_t steps = kAllSteps) {
  const auto lines = run.metrics();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i]["step"] != i + 1) return false;
  }
  return lines.size() == steps;
}

// The variables of rank `rank` of two, by a launcher that has started the job again `restarts` times.
// Any launcher but Slurm is torchrun with that name for the job.
std::map<std::string, std::string> variables(const std::string& launcher, int rank,
                                             const std::string& port, int restarts) {
  const std::string number = std::to_string(rank), count = std::to_string(restarts);
  if (launcher != "slurm")
    return {{"TORCHELASTIC_RUN_ID", launcher == "torchrun" ? "none" : launcher},
            {"TORCHELASTIC_RESTART_COUNT", count},
            {"RANK", number},
            {"WORLD_SIZE", "2"},
            {"LOCAL_RANK", number},
            {"LOCAL_WORLD_SIZE", "2"},
            {"MASTER_ADDR", "127.0.0.1"},
            {"MASTER_PORT", std::to_string(std::stoi(port) - 1000)}};
  std::map<std::string, std::string> slurm = {
      {"SLURM_JOB_ID", "7"},        {"SLURM_STEP_ID", "0"},
      {"SLURM_PROCID", number},     {"SLURM_STEP_NUM_TASKS", "2"},
      {"SLURM_LOCALID", number},    {"SLURM_STEP_TASKS_PER_NODE", "2"},
      {"SLURM_NODEID", "0"},        {"SLURM_STEP_NODELIST", "here"},
      {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}};
  if (restarts > 0) slurm["SLURM_RESTART_COUNT"] = count;
  return slurm;
}

// The options of ranks that another launcher starts again.
Arguments started_again(const Arguments& more) {
  return Arguments{"--max-restarts", "2",
                   "--set",          "train.steps=300",
                   "--set",          "checkpoint.every=10",
                   "--set",          "checkpoint.keep=0"} +
         more;
}

// Two ranks that another launcher has started. With `kill`, rank 1 is killed after a checkpoint.
Outcome run_by(const std::string& launcher, const GoldenRun& run, int restarts,
               const Arguments& more, bool kill = false) {
  const ReservedPort port;
  const std::string number = port.master().substr(port.master().find(':') + 1);
  const auto start = [&](int rank) {
    return std::make_unique<Process>(
        gxp_argv(run.train(started_again(more))),
        Surroundings{.environment = variables(launcher, rank, number, restarts), .file_bytes = 0});
  };
  const auto first = start(0), second = start(1);
  if (kill) {
    CHECK(poll_until([&] { return fs::exists(run.path("run/ckpt/step-00000010")); }));
    second->signal(SIGKILL);
  }
  return first->end();
}

}  // namespace

TEST_CASE("a run whose rank dies goes on by itself and ends with the same weights", "[cmd]") {
  const auto [rank, signal, moment, async] = GENERATE(
      table<int, int, Moment, std::string>({{1, SIGKILL, Moment::kStartup, "false"},
                                            {0, SIGSEGV, Moment::kFirstSteps, "false"},
                                            {2, SIGABRT, Moment::kAfterCheckpoint, "true"},
                                            {0, SIGKILL, Moment::kAfterCheckpoint, "false"},
                                            {0, SIGKILL, Moment::kWhileSaving, "false"},
                                            {1, SIGSEGV, Moment::kWhileSaving, "true"}}));
  const GoldenRun run;
  Process launcher(gxp_argv(run.train(restarting("2", {"--set", "checkpoint.async=" + async}))));
  REQUIRE(await(run, moment));
  REQUIRE(signal_rank(run.path("run.toml"), rank, signal));
  const Outcome outcome = launcher.end();
  CAPTURE(rank, signal, int(moment), async, outcome.err);
  CHECK(outcome.code == 0);
  CHECK(occurrences(outcome.err, "gxp warn restart 1 of 2: rank ") == 1);
  CHECK(occurrences(outcome.err, " was killed by signal " + std::to_string(signal)) > 0);
  CHECK(has_all_metrics(run));
  CHECK_FALSE(has_partial_checkpoint(run));
  CHECK(run.weights() == undisturbed_weights());
}

TEST_CASE("a restart leaves other runs' files to the first attempt's options", "[cmd]") {
  const auto [option, begins] = GENERATE(table<std::string, std::string>(
      {{"--overwrite", "step 1/300"}, {"--resume", "resumed from"}}));
  const GoldenRun run;
  REQUIRE(run.run({"--set", "train.steps=19"}).code == 0);
  Process launcher(gxp_argv(run.train(restarting("3", {option}))));
  // The first attempt dies before the directories are its own, the second after that.
  REQUIRE(signal_rank(run.path("run.toml"), 0, SIGKILL));
  REQUIRE(poll_until([&] {
    const bool resumes = option == "--resume";
    return fs::exists(run.path("run/ckpt/step-00000019")) == resumes &&
           run.metrics().size() >= (resumes ? 25 : 5);
  }));
  REQUIRE(signal_rank(run.path("run.toml"), 0, SIGKILL));
  const Outcome outcome = launcher.end();
  CAPTURE(option, outcome.err);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.err, begins));
  CHECK(occurrences(outcome.err, "gxp warn restart ") == 2);
  CHECK(has_all_metrics(run));
}

TEST_CASE("ranks that another launcher starts again continue what the job has saved", "[cmd]") {
  const std::string launcher = GENERATE("torchrun", "slurm");
  const GoldenRun run;
  REQUIRE(run.run({"--set", "train.steps=19"}).code == 0);
  const Outcome lost = run_by(launcher, run, 0, {"--overwrite"}, true);
  CAPTURE(launcher, lost.err);
  CHECK(lost.code == 5);
  const Outcome again = run_by(launcher, run, 1, {"--overwrite"});
  CAPTURE(again.err);
  CHECK(again.code == 0);
  CHECK(contains(again.err, "0 (written by 2 ranks, now 2)"));
  CHECK(has_all_metrics(run, 300));
  // Another job of that name is no restart.
  CHECK(contains(run_by(launcher, run, 0, {"--overwrite"}).err, "step 1/300"));
  const Outcome often = run_by(launcher, run, 3, {"--overwrite"});
  CHECK(often.code == 2);
  CHECK(contains(often.err, "--max-restarts 2: this is restart 3 of the job"));
}

TEST_CASE("ranks in other numbers continue a torchrun job that has a name", "[cmd]") {
  const GoldenRun run;
  const Arguments batch = {"--set", "train.grad_accum=1", "--set", "train.global_batch=12"};
  CHECK(run_by("job", run, 0, batch, true).code == 5);
  // A host that comes is no restart to torchrun. One rank is as good as two for the digest.
  std::map<std::string, std::string> alone = variables("job", 0, "29400", 0);
  alone["WORLD_SIZE"] = alone["LOCAL_WORLD_SIZE"] = "1";
  const Outcome again = run.run(started_again(batch), {.environment = alone, .file_bytes = 0});
  CAPTURE(again.err);
  CHECK(again.code == 0);
  CHECK(contains(again.err, "0 (written by 2 ranks, now 1)"));
  CHECK(has_all_metrics(run, 300));
  // Another name is another job.
  CHECK(contains(run_by("other", run, 0, batch).err, "an earlier run left"));
}

TEST_CASE("a run is not started again when it cannot go on, or is told to stop", "[cmd]") {
  const GoldenRun run;
  SECTION("settings that its ranks refuse: an earlier run") {
    REQUIRE(run.run({"--set", "train.steps=1"}).code == 0);
    const Outcome outcome = run.run(restarting("3"));
    CHECK(outcome.code == 2);
    CHECK_FALSE(contains(outcome.err, "restart"));
  }
  SECTION("a disk that is full") {
    const Outcome outcome = run.run(restarting("3"), {.environment = {}, .file_bytes = 30000});
    CHECK(outcome.code == 4);
    CHECK_FALSE(contains(outcome.err, "restart"));
  }
  SECTION("a signal to the launcher") {
    Process launcher(gxp_argv(run.train(restarting("3"))));
    REQUIRE(poll_until([&] { return run.metrics().size() > 2; }));
    launcher.signal(SIGTERM);
    const Outcome outcome = launcher.end();
    CHECK(outcome.code == 128 + SIGTERM);
    CHECK_FALSE(contains(outcome.err, "restart"));
  }
  SECTION("the last restart is used up") {
    Process launcher(gxp_argv(run.train(restarting("1"))));
    for (const size_t steps : {3, 14}) {
      REQUIRE(poll_until([&] { return run.metrics().size() >= steps; }));
      REQUIRE(signal_rank(run.path("run.toml"), 2, SIGKILL));
    }
    const Outcome outcome = launcher.end();
    CHECK(outcome.code == 5);
    CHECK(contains(outcome.err, "gxp warn no restart: all 1 restarts are used up"));
  }
}

TEST_CASE("--max-restarts without something to continue is refused by name", "[cmd]") {
  const GoldenRun run;
  const auto [more, message] = GENERATE(table<Arguments, std::string>(
      {{{"--set", "checkpoint.dir="}, "--max-restarts: checkpoint.dir is not set"},
       {{"--time-by-class"}, "--max-restarts: there is nothing"}}));
  const Arguments all = Arguments{"train", run.path("run.toml"), "--max-restarts", "1"} + more;
  const Outcome outcome = run_gxp(all);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 2);
  CHECK(contains(outcome.err, message));
}

TEST_CASE("a thousand kills of random ranks leave no trace in the weights", "[cmd][.long]") {
  const std::string replica = GENERATE("none", "neighbour");
  std::mt19937 random(7);
  const GoldenRun run;
  const int kills = 500;  // of each kind
  const Arguments settings = {"--nproc", "4", "--set", "train.steps=20000"};
  const Arguments saving = {
      "--set", "checkpoint.every=5", "--set", "checkpoint.keep=3", "--max-restarts", "1000"};
  const Arguments replicating = {"--set", "checkpoint.replica=neighbour",
                                 "--set", "checkpoint.replica_every=5",
                                 "--set", "checkpoint.every=1000"};
  Process launcher(
      gxp_argv(run.train(settings + saving + (replica == "none" ? Arguments{} : replicating))));
  size_t reached = 0;
  for (int kill = 0; kill < kills; ++kill) {
    const size_t wanted = reached + random() % 25;
    const bool goes_on = poll_until([&] { return (reached = run.metrics().size()) >= wanted; });
    if (!goes_on) launcher.signal(SIGTERM);
    INFO((goes_on ? "" : launcher.end().err));
    CAPTURE(replica, kill, wanted, reached);
    REQUIRE(goes_on);
    REQUIRE(signal_rank(run.path("run.toml"), int(random() % 4), SIGKILL));
  }
  const auto end = [](Process& run) { return run.end(Deadline::after(std::chrono::minutes(40))); };
  const Outcome outcome = end(launcher);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(occurrences(outcome.err, "gxp warn restart ") >= kills / 2);
  const GoldenRun undisturbed;
  Process in_peace(gxp_argv(undisturbed.train(settings)));
  REQUIRE(end(in_peace).code == 0);
  CHECK(run.weights() == undisturbed.weights());
}

}  // namespace gxp
