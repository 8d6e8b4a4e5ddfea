// Standard streams that are closed, and paths that lead to no file.
#include <sys/stat.h>

#include <algorithm>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"

namespace gxp {
namespace {

// `gxp ARGUMENTS`, its standard streams changed as a shell's REDIRECTION says.
Outcome run_with(const std::string& redirection, const std::vector<std::string>& arguments) {
  return Process(Arguments{"sh", "-c", "exec \"$@\" " + redirection, "sh"} + gxp_argv(arguments))
      .end(Deadline::after(std::chrono::seconds(20)));
}

}  // namespace

TEST_CASE("no file takes the place of a standard stream that is closed", "[cmd]") {
  const std::string redirection = GENERATE("2>&-", "<&- 2>&-");
  const GoldenRun run;
  CHECK(run_with(redirection, run.train({"--set", "train.steps=2"})).code == 0);
  const std::string metrics = read_file(run.path("metrics.jsonl"));
  CHECK(run.metrics().size() == 2);
  CHECK(std::ranges::count(metrics, '\n') == 2);
}

TEST_CASE("a run that cannot write its results says so, however many ranks it has", "[cmd]") {
  const std::string nproc = GENERATE("1", "2");
  const GoldenRun run;
  const Outcome outcome = run_with(">&-", run.train({"--nproc", nproc, "--set", "train.steps=2"}));
  CAPTURE(nproc, outcome.err);
  CHECK(outcome.code == 4);
  CHECK(run.metrics().size() == 2);
}

TEST_CASE("a result that a closed stdout does not take is an error", "[cmd]") {
  const Outcome outcome = run_with(">&-", {"topo", "--from", "dgx-h100"});
  CHECK(outcome.code == 4);
  CHECK(contains(outcome.err, "write to stdout"));
}

TEST_CASE("a pipe in place of a file is refused at once", "[cmd]") {
  const TemporaryDirectory directory;
  const std::string pipe = directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const GoldenRun run;
  const std::vector<std::vector<std::string>> commands = {
      {"train", pipe},
      {"topo", "--from", pipe},
      run.train({"--set", "comm.profile=" + pipe}),
      run.train({"--nnodes", "2", "--master", "127.0.0.1:1"})};
  const auto arguments = commands[GENERATE(size_t{0}, size_t{1}, size_t{2}, size_t{3})];
  Process process(gxp_argv(arguments),
                  {.environment = {{"GXP_JOB_SECRET_FILE", pipe}}, .file_bytes = 0});
  const Outcome outcome = process.end(Deadline::after(std::chrono::seconds(20)));
  CAPTURE(arguments, outcome.err);
  CHECK(outcome.code == 4);
  CHECK(contains(outcome.err, pipe + ": it is a pipe, not a regular file"));
}

TEST_CASE("a path that cannot be examined is the system's error, not a bug", "[cmd]") {
  const TemporaryDirectory directory;
  const std::string loop = directory / "loop";
  std::filesystem::create_symlink("loop", loop);
  const std::vector<std::vector<std::string>> commands = {{"topo", "doctor", "--from", loop},
                                                          {"convert-ckpt", loop, "--verify"}};
  const auto arguments = commands[GENERATE(size_t{0}, size_t{1})];
  const Outcome outcome = run_gxp(arguments);
  CHECK(outcome.code == 4);
  CHECK(contains(outcome.err, "Too many levels of symbolic links"));
}

TEST_CASE("without /proc ranks cannot be started, which is no bug", "[cmd]") {
  const Outcome outcome = Process(Arguments{"unshare", "-rm", "sh", "-c",
                                            "mount -t tmpfs none /proc && exec \"$@\"", "sh"} +
                                  gxp_argv({"allreduce-test", "--nproc", "2"}))
                              .end();
  if (!contains(outcome.err, "gxp: ")) {
    WARN("no namespace can be made here: " << outcome.err);
    return;
  }
  CHECK(outcome.code == 4);
  CHECK(contains(outcome.err, "start ranks: read /proc/self/exe"));
}

TEST_CASE("control characters of a file reach no terminal", "[cmd]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "run.toml";
  make_file(file, "[train]\n\"\\u001b[2J\\u009b\" = 1\n");
  const Outcome outcome = run_gxp({"train", file});
  CHECK(outcome.code == 2);
  CHECK(contains(outcome.err, "\\x1b[2J\\xc2\\x9b"));
  CHECK(outcome.err.find('\x1b') == std::string::npos);
}

}  // namespace gxp
