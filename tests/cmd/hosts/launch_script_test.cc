// `gxp train --print-launch`, and hosts that a launcher has started: the scripts run here, with
// programs in place of ssh and srun that start both hosts on this one.
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <filesystem>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"
#include "tests/cmd/reserved_port.h"

namespace gxp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSsh = R"(#!/bin/bash
# ssh -tt OPTION... HOST COMMAND
host=${@: -2:1}
[[ $1 == -tt && ${host#me@} == 127.0.0.* ]] || exit 255
exec bash -c "${@: -1}"
)";
// The second task first: they start in any order.
constexpr const char* kSrun = R"(#!/bin/bash
[[ $1 == --cpus-per-task=4 ]] || exit 1
shift
export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=localhost,other SLURM_LOCALID=0
export SLURM_STEP_TASKS_PER_NODE='1(x2)'
for node in 1 0; do SLURM_NODEID=$node SLURM_PROCID=$node "$@" & pids[node]=$!; done
code=0
for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
exit $code
)";

class ScriptRun {
 public:
  ScriptRun() {
    for (const auto& [name, text] : {std::pair{"ssh", kSsh}, {"srun", kSrun}}) {
      make_file(run.path(name), text);
      fs::permissions(run.path(name), fs::perms::owner_all);
    }
  }

  // The outcome of `bash SCRIPT words...`; the script's text is in `script`.
  Outcome operator()(const std::string& kind, const Arguments& more, const Arguments& words) {
    const Outcome printed = run.run(Arguments{"--nproc", "2", "--nnodes", "2", "--print-launch",
                                              kind, "--master", port_.master()} +
                                    more);
    CAPTURE(printed.err);
    REQUIRE(printed.code == 0);
    make_file(run.path("script"), printed.out);
    Process process(Arguments{"/bin/bash", run.path("script")} + words,
                    {.environment = {{"PATH", run.path("") + ":" + std::getenv("PATH")},
                                     {"SLURM_JOB_ID", "7"},
                                     {"SLURM_CPUS_ON_NODE", "4"},
                                     {"MASTER_PORT", port_of(port_.master())}}});
    return process.end();
  }

  GoldenRun run;

 private:
  static std::string port_of(const std::string& master) {
    return master.substr(master.find(':') + 1);
  }

  ReservedPort port_;
};

std::string weights_of_four_ranks() {
  const GoldenRun run;
  REQUIRE(run.run({"--nproc", "4"}).code == 0);
  return run.weights();
}

}  // namespace

TEST_CASE("a printed script starts all ranks", "[cmd]") {
  struct Case {
    std::string kind;
    Arguments more, words;
  };
  const Case tried = GENERATE(Case{"ssh", {}, {"127.0.0.1", "127.0.0.2"}},
                              Case{"ssh", {"--max-restarts", "2"}, {"me@127.0.0.1", "127.0.0.2"}},
                              Case{"slurm", {"--max-restarts", "2"}, {}});
  CAPTURE(tried.kind, tried.more);
  ScriptRun start;
  const Outcome outcome = start(tried.kind, tried.more, tried.words);
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.code == 0);
  CHECK(start.run.weights() == weights_of_four_ranks());
}

TEST_CASE("a printed script says how it fails", "[cmd]") {
  ScriptRun start;
  CHECK(start("ssh", {}, {"127.0.0.1"}).code == 2);
  // The one host cannot be reached, so that the other waits in vain.
  CHECK(start("ssh", {"--join-timeout", "1"}, {"127.0.0.1", "nowhere"}).code == 255);
  const Outcome mpi =
      start.run.run({"--nnodes", "2", "--max-restarts", "1", "--print-launch", "mpi"});
  CHECK(mpi.code == 2);
  CHECK(contains(mpi.err, "--print-launch mpi: mpirun starts no ranks again"));
}

TEST_CASE("a printed manifest is YAML that holds the command", "[cmd]") {
  const GoldenRun run;
  const Outcome outcome = run.run({"--nproc", "8", "--nnodes=4", "--print-launch=k8s", "--set",
                                   "checkpoint.keep=2", "--max-restarts", "3"});
  REQUIRE(outcome.code == 0);
  const std::vector<YAML::Node> documents = YAML::LoadAll(outcome.out);
  REQUIRE(documents.size() == 2);
  const YAML::Node spec = documents[1]["spec"];
  CHECK(spec["completions"].as<int>() == 4);
  const YAML::Node pod = spec["template"]["spec"];
  CHECK(pod["subdomain"].as<std::string>() == documents[0]["metadata"]["name"].as<std::string>());
  const auto command = pod["containers"][0]["command"].as<Arguments>();
  const Arguments end = {
      "--set", "checkpoint.keep=2", "--max-restarts", "3", "--nproc", "8", "--nnodes",
      "4",     "--master",          "gxp-0.gxp:29511"};
  REQUIRE(command.size() > end.size());
  CHECK(Arguments(command.end() - ptrdiff_t(end.size()), command.end()) == end);
}

TEST_CASE("a printed script keeps how many hosts suffice", "[cmd]") {
  const auto [kind, text] = GENERATE(table<std::string, std::string>(
      {{"slurm", " --nnodes 2:4"}, {"ssh", " --nnodes 2:4"}, {"k8s", "\"--nnodes\",\"2:4\""}}));
  const GoldenRun run;
  const Arguments hosts = {
      "--nproc", "1",     "--nnodes",           "2:4",   "--print-launch",
      kind,      "--set", "train.grad_accum=1", "--set", "train.global_batch=4"};
  Arguments restarts = hosts;
  restarts.insert(restarts.end(), {"--max-restarts", "2"});
  const Outcome printed = run.run(restarts);
  CAPTURE(printed.err);
  CHECK(printed.code == 0);
  CHECK(contains(printed.out, text));
  CHECK((kind != "slurm" || contains(printed.out, "srun --no-kill ")));
  CHECK(run.run(hosts).code == 2);  // without restarts, fewer than all never suffice
  const Outcome spares =
      run.run({"--nnodes", "4", "--spares", "2", "--max-restarts", "2", "--print-launch", kind});
  CAPTURE(spares.err);
  CHECK(spares.code == 0);
  CHECK(contains(spares.out, kind == "k8s" ? "\"--spares\",\"2\"" : " --nnodes 4 --spares 2"));
  CHECK(contains(spares.out, "6"));
}

TEST_CASE("a host's place must not be contradicted", "[cmd]") {
  const std::map<std::string, std::string> pod = {{"PET_NODE_RANK", "1"},
                                                  {"PET_NNODES", "3"},
                                                  {"PET_NPROC_PER_NODE", "2"},
                                                  {"RANK", "1"},
                                                  {"WORLD_SIZE", "3"}};
  struct Case {
    Arguments arguments;
    std::string text;
  };
  const Case tried = GENERATE(
      Case{{"--nproc", "2", "--nnodes", "2"}, "--nnodes 2: it is 3 by PET_NODE_RANK"},
      Case{{"--nproc", "2", "--node-rank", "0"}, "--node-rank 0: it is 1 by PET_NODE_RANK"},
      Case{{"--nproc", "2"}, "launch on 3 hosts: rank 0's host is unknown; give --master"},
      Case{{}, "PET_NPROC_PER_NODE asks for 2; give --nproc 2"});
  const GoldenRun run;
  const Outcome outcome = run.run(tried.arguments, {.environment = pod});
  CAPTURE(outcome.err);
  CHECK(outcome.code == 2);
  CHECK(contains(outcome.err, tried.text));
}

}  // namespace gxp
