// Whole programs where the system allows a process little.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"
#include "tests/cmd/run_gxp.h"

namespace gxp {
namespace {

constexpr const char* kTwoRanks = "exec \"$0\" allreduce-test --nproc 2 -b 64 -e 64 -n 2 -w 0 ";

// A shell that sets limits and then becomes gxp, "$0" there.
Outcome run_limited(const std::string& script) {
  return Process({"sh", "-c", script, GXP_BINARY}).end();
}

}  // namespace

#ifndef __SANITIZE_ADDRESS__  // which maps more address space than any limit
TEST_CASE("ranks share memory as far as their address space goes", "[cmd]") {
  const Outcome outcome = run_limited(std::string("ulimit -v 8000000; ") + kTwoRanks);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.err, "transport: shm"));
}

TEST_CASE("with little address space ranks take tcp, or are told of ulimit -v", "[cmd]") {
  const std::string limit = "ulimit -v 400000; ";
  const Outcome by_itself = run_limited(limit + kTwoRanks);
  CAPTURE(by_itself.err);
  CHECK(by_itself.code == 0);
  CHECK(contains(by_itself.err, "transport: tcp: no shm: ranks 0 and 1 cannot share memory"));
  CHECK(contains(by_itself.err, "ulimit -v: "));
  const Outcome asked = run_limited(limit + kTwoRanks + "--transport shm");
  CAPTURE(asked.err);
  CHECK(asked.code == 3);
  CHECK(contains(asked.err, "ulimit -v: "));
}

TEST_CASE("too few processes are told as a limit, and as no bug", "[cmd]") {
  if (geteuid() != 0) {
    WARN("skipped: this needs root, to become a user without processes");
    return;
  }
  const std::string as_nobody = "prlimit --nproc=$1 setpriv --reuid=64999 --clear-groups ";
  for (const char* most : {"1", "2", "4", "6"}) {
    const Outcome outcome =
        run_limited("set -- " + std::string(most) + "; exec " + as_nobody +
                    "\"$0\" allreduce-test --nproc 2 -b 64 -e 64 -n 2 -w 0 --join-timeout 5");
    CAPTURE(most, outcome.err);
    CHECK(outcome.code == 4);
    CHECK(contains(outcome.err, "for this user (ulimit -u)"));
  }
}

TEST_CASE("a read of data that hangs keeps no run that is done from ending, with exit 4",
          "[cmd][.long]") {
  const GoldenRun run;
  const Surroundings preloaded{.environment = {{"LD_PRELOAD", GXP_HANGING_READS}}, .file_bytes = 0};
  const Outcome outcome =
      run.run({"--set", "train.steps=1", "--set", "train.grad_accum=1"}, preloaded);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 4);
  CHECK(contains(outcome.err, "abandon a read of data that hangs"));
  CHECK(run.metrics().size() == 1);
}
#endif

TEST_CASE("a rank that the OOM killer ends is reported as such", "[cmd]") {
  const std::string group = "/sys/fs/cgroup/memory/gxp-test-" + std::to_string(getpid());
  if (geteuid() != 0 || ::access("/sys/fs/cgroup/memory/memory.limit_in_bytes", F_OK) != 0) {
    WARN("skipped: this needs root and control groups of version 1");
    return;
  }
  const Outcome outcome = run_limited(
      "mkdir " + group + " && echo 60M > " + group + "/memory.limit_in_bytes && (echo 0 > " +
      group +
      "/cgroup.procs; exec \"$0\" allreduce-test --nproc 2 -b 200M -e 200M -n 1 -w 0); code=$?; "
      "rmdir " +
      group + "; exit $code");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 5);
  CHECK(contains(outcome.err, "(SIGKILL), as the OOM killer does"));
  CHECK(contains(outcome.err, "the cgroup allows 60 MiB"));
}

TEST_CASE("ranks are started in a shell that is its launcher's only rank", "[cmd]") {
  const Surroundings shell{.environment = {{"SLURM_JOB_ID", "5"},
                                           {"SLURM_STEP_ID", "0"},
                                           {"SLURM_PROCID", "0"},
                                           {"SLURM_LOCALID", "0"},
                                           {"SLURM_NODEID", "0"},
                                           {"SLURM_STEP_NUM_TASKS", "1"},
                                           {"SLURM_STEP_TASKS_PER_NODE", "1"},
                                           {"SLURM_STEP_NODELIST", "here"}},
                           .file_bytes = 0};
  const Outcome outcome =
      run_gxp({"allreduce-test", "--nproc", "2", "-b", "64", "-e", "64", "-n", "2"}, shell);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.out, "2 ranks"));
}

TEST_CASE("a master that is each host itself is told at once", "[cmd]") {
  for (const std::string master : {"127.0.0.1", "0.0.0.0"}) {
    const Outcome outcome = run_gxp({"allreduce-test", "--nnodes", "2", "--node-rank", "1",
                                     "--master", master + ":1", "--join-timeout", "0.3"});
    CAPTURE(outcome.err);
    CHECK(outcome.code == 5);
    CHECK(contains(outcome.err,
                   "rank 0's address " + master + " means the local host on every host"));
    CHECK(contains(outcome.err, master + " is this host itself; if rank 0 runs on another one"));
  }
}

}  // namespace gxp
