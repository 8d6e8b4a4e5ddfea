// What `gxp train` does where an earlier run has been or another one is, and how it ends when it is
// told to, or cannot write.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManySteps = "train.steps=1000000";

// The names in a directory, and what lies below, with each file's size and time.
std::string listing(const std::string& directory) {
  std::vector<std::string> lines;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file() || entry.path().filename() == ".gxp.lock") continue;
    lines.push_back(fmt::format("{} {} {}\n", entry.path().string(), entry.file_size(),
                                entry.last_write_time().time_since_epoch().count()));
  }
  std::ranges::sort(lines);
  return fmt::format("{}", fmt::join(lines, ""));
}

// A run that goes on until it is told to end, once it has done a step.
Process start_long_run(const GoldenRun& run, const Arguments& more = {}) {
  return Process(gxp_argv(run.train(Arguments{"--set", kManySteps} + more)));
}

void await_step(const GoldenRun& run) {
  REQUIRE(poll_until([&] { return !run.metrics().empty(); }));
}

// Both signals are there when it runs on: it has no time to save between them.
void signal_at_once(const Process& process, int first, int second) {
  for (const int number : {SIGSTOP, first, second, SIGCONT}) process.signal(number);
}

bool has_saved(const Outcome& outcome) { return contains(outcome.err, "saved /"); }

}  // namespace

TEST_CASE("an earlier run is neither started over nor touched, unless --overwrite says so",
          "[cmd]") {
  const std::string nproc = GENERATE("1", "2");
  const GoldenRun run;
  const auto with = [&](Arguments more) {
    more.insert(more.end(), {"--nproc", nproc});
    return run.run(more);
  };
  REQUIRE(with({"--set", "train.steps=6", "--set", "checkpoint.every=2"}).code == 0);
  make_file(run.path("run/ckpt/notes.txt"), "mine");
  const std::string before = listing(run.path("run"));
  const Outcome refused = with({"--set", "train.steps=4"});
  CAPTURE(refused.err);
  CHECK(refused.code == 2);
  REQUIRE_FALSE(refused.errors().empty());
  for (const char* words :
       {"step-00000006 in ", "run/ckpt/metrics.jsonl", "--resume", "--overwrite"})
    CHECK(contains(refused.errors()[0], words));
  CHECK(listing(run.path("run")) == before);
  CHECK(run.metrics().size() == 6);

  const Outcome replaced = with({"--set", "train.steps=4", "--overwrite"});
  CAPTURE(replaced.err);
  CHECK(replaced.code == 0);
  CHECK(run.metrics().size() == 4);
  CHECK(fs::exists(run.path("run/ckpt/step-00000004")));
  CHECK_FALSE(fs::exists(run.path("run/ckpt/step-00000006")));
  CHECK(read_file(run.path("run/ckpt/notes.txt")) == "mine");
}

TEST_CASE("going on and starting over at once is refused", "[cmd]") {
  const GoldenRun run;
  const Outcome outcome = run.run({"--resume", "--overwrite"});
  CHECK(outcome.code == 2);
  CHECK(contains(outcome.err,
                 "--overwrite: it would remove the checkpoint that --resume continues from"));
  CHECK_FALSE(fs::exists(run.path("run")));
}

TEST_CASE("a resume without a checkpoint is an error and makes no directory", "[cmd]") {
  const std::string nproc = GENERATE("1", "2");
  const GoldenRun run;
  const Outcome outcome = run.run({"--resume", "--nproc", nproc, "--set", "train.steps=2"});
  CAPTURE(outcome.err);
  CHECK(outcome.code == 4);
  CHECK(contains(outcome.err, "no checkpoint of gxp train there; start without --resume"));
  CHECK_FALSE(fs::exists(run.path("run")));
}

TEST_CASE("a finished run that is resumed has no loss to report", "[cmd]") {
  const GoldenRun run;
  REQUIRE(run.run({"--set", "train.steps=3"}).code == 0);
  const Outcome outcome = run.run({"--set", "train.steps=3", "--resume", "--format", "json"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(nlohmann::json::parse(outcome.out)["loss"].is_null());
}

TEST_CASE("a run that goes on says what it changes", "[cmd]") {
  const GoldenRun run;
  REQUIRE(run.run({"--set", "train.steps=3"}).code == 0);
  const Outcome outcome =
      run.run({"--resume", "--set", "train.steps=4", "--set", "train.micro_batch=2", "--set",
               "lr_schedule.name=constant", "--set", "optim.lr=0.5"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(contains(outcome.err, "warn resume: train.steps was 3, is now 4; optim.lr was "));
  CHECK(contains(outcome.err, "; lr_schedule.name was "));
  CHECK(contains(outcome.err, "; a step had 3 samples, has now 6\n"));
  CHECK(contains(outcome.err, "warn resume: the learning rate was "));
}

TEST_CASE("settings are not written through a link that others have planted", "[cmd]") {
  const GoldenRun run;
  std::filesystem::create_directory(run.path("records"));
  make_file(run.path("notes"), "keep");
  std::filesystem::create_symlink(run.path("notes"), run.path("records/resolved.toml"));
  const Outcome outcome =
      run.run({"--set", "train.steps=1", "--set", "train.run_dir=" + run.path("records")});
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(read_file(run.path("notes")) == "keep");
  CHECK(contains(read_file(run.path("records/resolved.toml")), "[model]"));
}

TEST_CASE("a finished run that is resumed removes what a killed one has left", "[cmd]") {
  const GoldenRun run;
  REQUIRE(run.run({"--set", "train.steps=3"}).code == 0);
  const std::string left = run.path("run/ckpt/.step-00000001.partial");
  std::filesystem::create_directory(left);
  REQUIRE(run.run({"--set", "train.steps=3", "--resume"}).code == 0);
  CHECK_FALSE(std::filesystem::exists(left));
}

TEST_CASE("a second run in a directory is refused and leaves the first alone", "[cmd]") {
  const std::string how = GENERATE("--resume", "--overwrite");
  const GoldenRun run;
  Process first = start_long_run(run);
  await_step(run);
  const Outcome second = run.run({how});
  CAPTURE(second.err);
  CHECK(second.code == 4);
  CHECK(contains(second.err, "run/ckpt: another run is using it, process "));
  first.signal(SIGTERM);
  const Outcome ended = first.end();
  CHECK(ended.code == 128 + SIGTERM);
  CHECK(has_saved(ended));
}

TEST_CASE("metrics that cannot be written are told and cost no checkpoint", "[cmd]") {
  const std::string nproc = GENERATE("1", "2");
  const GoldenRun run;
  const Outcome outcome = run_gxp({"train", run.path("run.toml"), "--nproc", nproc, "--metrics",
                                   "/dev/full", "--set", "train.steps=4"});
  CAPTURE(outcome.err);
  CHECK(outcome.code == 4);
  const std::string start = nproc == "1" ? "gxp: error: " : "gxp[rank 0] error ";
  CHECK(contains(outcome.err, start + "write metrics to /dev/full: No space left on device"));
  CHECK(contains(outcome.err, "training continues without that file"));
  CHECK(fs::exists(run.path("run/ckpt/step-00000004")));
  const std::string lines = read_file(run.path("run/ckpt/metrics.jsonl"));
  CHECK(std::ranges::count(lines, '\n') == 4);
}

TEST_CASE("one signal to all processes of a run, in any order, lets it save", "[cmd]") {
  const int number = GENERATE(SIGTERM, SIGINT);
  const std::string order = GENERATE("launcher first", "ranks first", "launcher between");
  CAPTURE(number, order);
  const GoldenRun run;
  Process launcher = start_long_run(run, {"--nproc", "2"});
  await_step(run);
  const auto is_rank = [](pid_t process) { return !variable_of(process, "GXP_RANK").empty(); };
  std::vector<pid_t> processes = processes_with(run.path("run.toml"));
  REQUIRE(processes.size() == 3);
  std::ranges::stable_partition(processes, is_rank);
  if (order == "launcher first") std::ranges::reverse(processes);
  if (order == "launcher between") std::swap(processes[1], processes[2]);
  for (const pid_t process : processes) ::kill(process, number);
  const Outcome outcome = launcher.end();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 128 + number);
  CHECK(outcome.errors().empty());
  CHECK(has_saved(outcome));
}

TEST_CASE("a run that is paused for longer than comm.timeout_s goes on", "[cmd]") {
  const std::string transport = GENERATE("shm", "tcp");
  CAPTURE(transport);
  const GoldenRun run;
  Process launcher = start_long_run(
      run, {"--nproc", "2", "--set", "comm.timeout_s=1", "--set", "comm.transport=" + transport});
  await_step(run);
  const std::vector<pid_t> processes = processes_with(run.path("run.toml"));
  for (const pid_t process : processes) ::kill(process, SIGSTOP);
  const auto paused = std::chrono::steady_clock::now();
  poll_until([&] { return std::chrono::steady_clock::now() - paused > std::chrono::seconds(3); });
  for (const pid_t process : processes) ::kill(process, SIGCONT);
  const size_t steps = run.metrics().size();
  CHECK(poll_until([&] { return run.metrics().size() >= steps + 20; }));
  launcher.signal(SIGTERM);
  const Outcome outcome = launcher.end();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 128 + SIGTERM);
  CHECK(outcome.errors().empty());
}

TEST_CASE("a terminal that closes lets the run save, however often it says so", "[cmd]") {
  const std::string nproc = GENERATE("1", "2");
  const GoldenRun run;
  Process process = start_long_run(run, {"--nproc", nproc});
  await_step(run);
  signal_at_once(process, SIGHUP, SIGUSR1);
  const Outcome outcome = process.end();
  CAPTURE(outcome.err);
  CHECK((outcome.code == 128 + SIGHUP || outcome.code == 128 + SIGUSR1));
  CHECK(has_saved(outcome));
}

TEST_CASE("under nohup a run goes on when the terminal closes", "[cmd]") {
  const std::string nproc = GENERATE("1", "2");
  const GoldenRun run;
  Process process(Arguments{"nohup"} +
                  gxp_argv(run.train({"--set", kManySteps, "--nproc", nproc})));
  await_step(run);
  process.signal(SIGHUP);
  const size_t steps = run.metrics().size();
  CHECK(poll_until([&] { return run.metrics().size() >= steps + 3; }));
  process.signal(SIGTERM);
  CHECK(process.end().code == 128 + SIGTERM);
}

TEST_CASE("a second signal ends a run at once, and its exit code does not say that it is saved",
          "[cmd]") {
  const std::string nproc = GENERATE("1", "2");
  const GoldenRun run;
  Process process = start_long_run(run, {"--nproc", nproc});
  await_step(run);
  signal_at_once(process, SIGINT, SIGTERM);
  const Outcome outcome = process.end();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 5);
  CHECK_FALSE(has_saved(outcome));
}

TEST_CASE("a reader of the output that leaves costs no step", "[cmd]") {
  const GoldenRun run;
  // The pipe has had a reader, so that it could be opened, and has none when gxp begins.
  const std::string script = R"(mkfifo "$0"; : <"$0" & exec 3>"$0"; wait; exec "$@" >&3 2>&1)";
  CHECK(Process(Arguments{"sh", "-c", script, run.path("pipe")} +
                gxp_argv(run.train({"--set", "train.steps=5"})))
            .end()
            .code == 4);  // the result has reached nobody
  CHECK(run.metrics().size() == 5);
  CHECK(fs::exists(run.path("run/ckpt/step-00000005")));
}

}  // namespace gxp
