// A rank that dies at any moment ends the job at once, and nothing is lost.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"

namespace gxp {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kSteps = 150;

// Ranks with odd numbers die while checkpoints are written in the background, 2 and 3 while rank 0
// joins their files.
std::vector<std::string> arguments(int victim) {
  return {"--nproc", "4",
          "--set",   fmt::format("train.steps={}", kSteps),
          "--set",   "checkpoint.every=10",
          "--set",   fmt::format("checkpoint.async={}", victim % 2 == 1),
          "--set",   fmt::format("checkpoint.layout={}", victim < 2 ? "sharded" : "full")};
}

// A 4-rank run in which `victim` is killed once `steps` steps are done; 0: as soon as it exists.
struct Murder {
  GoldenRun run;
  std::filesystem::path scratch = run.path("scratch");
  Outcome outcome;
  double seconds = 0;  // from the kill until all have ended

  Murder(int victim, size_t steps) {
    std::filesystem::create_directory(scratch);
    const Surroundings own_scratch{.environment = {{"TMPDIR", scratch}}, .file_bytes = 0};
    Process launcher(gxp_argv(run.train(arguments(victim))), own_scratch);
    REQUIRE(poll_until([&] { return run.metrics().size() >= steps; }));
    const auto killed = Clock::now();
    CHECK(signal_rank(run.path("run.toml"), victim, SIGKILL));
    outcome = launcher.end(Deadline::after(std::chrono::seconds(10)));
    poll_until([&] { return processes().empty(); }, Deadline::after(std::chrono::seconds(10)));
    seconds = std::chrono::duration<double>(Clock::now() - killed).count();
  }

  [[nodiscard]] std::vector<pid_t> processes() const {
    return processes_with(run.path("run.toml"));
  }
};

// What is left in memory that processes share by name.
std::vector<std::string> shared_memory_files() {
  std::vector<std::string> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", none)) {
    const std::string name = entry.path().filename();
    if (name.find("gxp") != std::string::npos) found.push_back(name);
  }
  return found;
}

// Each failure names the victim before any other rank, and the first says how it died. Before the
// first step a rank may not have met the victim yet: it then says that it could not join rank 0.
void check_blame(const Outcome& outcome, int victim, size_t steps) {
  const std::string name = fmt::format("rank {}", victim);
  const std::vector<std::string> errors = outcome.errors();
  REQUIRE_FALSE(errors.empty());
  CHECK(errors[0] == fmt::format("gxp error {} was killed by signal 9 (SIGKILL)", name));
  for (size_t i = 1; i < errors.size(); ++i) {
    const size_t cause = errors[i].find(" error ");
    REQUIRE(cause != std::string::npos);
    const std::string text = errors[i].substr(cause + 7);
    const bool never_joined = steps == 0 && (text.starts_with("join rank 0 at ") ||
                                             text.starts_with("connect to rank 0 at "));
    CHECK((text.starts_with(name + ": ") || never_joined));
  }
  CHECK(errors.size() <= 3);
}

bool has_checkpoint(const GoldenRun& run) {
  std::error_code none;
  return std::ranges::any_of(
      std::filesystem::directory_iterator(run.path("run/ckpt"), none),
      [](const auto& entry) { return entry.path().filename().string().starts_with("step-"); });
}

const std::string& uninterrupted_weights() {
  static const std::string weights = [] {
    const GoldenRun run;
    REQUIRE(run.run(arguments(0)).code == 0);
    return run.weights();
  }();
  return weights;
}

// Returns the seconds until all had ended.
double kill_and_resume(int victim, size_t steps) {
  const Murder murder(victim, steps);
  CAPTURE(victim, steps, murder.outcome.err);
  CHECK(murder.outcome.code == 5);
  CHECK(murder.seconds < 5);
  CHECK(murder.processes().empty());
  check_blame(murder.outcome, victim, steps);
  CHECK(shared_memory_files().empty());
  CHECK(std::filesystem::is_empty(murder.scratch));
  std::vector<std::string> again = arguments(victim);
  again.push_back(has_checkpoint(murder.run) ? "--resume" : "--overwrite");
  const Outcome resumed = murder.run.run(again);
  CAPTURE(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(murder.run.weights() == uninterrupted_weights());
  return murder.seconds;
}

}  // namespace

TEST_CASE("killing any one rank ends all, names it, and loses no more than the last steps",
          "[cmd]") {
  const auto [victim, steps] =
      GENERATE(table<int, size_t>({{0, 7}, {1, 22}, {2, 35}, {3, 14}, {1, 0}}));
  kill_and_resume(victim, steps);
}

TEST_CASE("twenty kills of a random rank at a random step", "[cmd][.long]") {
  std::mt19937 random(20);
  double longest = 0;
  for (int round = 0; round < 20; ++round) {
    const int victim = int(random() % 4);
    longest = std::max(longest, kill_and_resume(victim, random() % 100));
  }
  WARN("the longest time from a kill to the end of all: " << longest << " s");
}

}  // namespace gxp
