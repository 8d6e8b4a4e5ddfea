// `gxp allreduce-test` as its users run it: launcher, ranks, tables, exit codes.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "lib/base/error.h"
#include "lib/collective/flight/flight_record.h"
#include "tests/catch.h"
#include "tests/cmd/reserved_port.h"
#include "tests/cmd/run_gxp.h"
#include "tests/temporary_directory.h"

namespace gxp {
namespace {

using nlohmann::json;

// Small and fast unless the arguments say otherwise.
Outcome run_test(const Arguments& more) {
  return run_gxp(
      Arguments{"allreduce-test", "-b", "24", "-e", "96", "-f", "2", "-n", "2", "-w", "0"} + more);
}

json run_json(Arguments more) {
  more.insert(more.end(), {"--format", "json"});
  const Outcome outcome = run_test(more);
  CAPTURE(outcome.err, outcome.out);
  REQUIRE(outcome.code == 0);
  return json::parse(outcome.out);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> rows_of(const std::string& text) {
  std::vector<std::string> rows;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with('#')) rows.push_back(line);
  }
  return rows;
}

// The process of a rank that has run some operations.
pid_t working_rank(const std::string& records, const std::string& rank) {
  pid_t found = -1;
  poll_until([&] {
    for (const pid_t process : processes_with(records)) {
      if (variable_of(process, "GXP_RANK") == rank) found = process;
    }
    try {
      return read_flight_record(records + "/rank-" + rank + ".flight").entries.size() > 20;
    } catch (const Error&) {
      return false;  // it is not there yet
    }
  });
  return found;
}

}  // namespace

TEST_CASE("every operation is right over every transport", "[cmd]") {
  const auto [nproc, transport, memory] =
      GENERATE(table<std::string, std::string, std::string>({{"1", "auto", "ordinary"},
                                                             {"2", "shm", "communicator"},
                                                             {"3", "shm", "ordinary"},
                                                             {"2", "tcp", "ordinary"},
                                                             {"3", "tcp", "communicator"}}));
  CAPTURE(nproc, transport, memory);
  const json report = run_json({"--op", "all", "--root", "all", "--nproc", nproc, "--transport",
                                transport, "--memory", memory});
  CHECK(report["world_size"] == std::stoi(nproc));
  CHECK(report["memory"] == memory);
  if (nproc != "1") CHECK(report["transport"] == transport);
  std::set<std::string> operations;
  for (const json& row : report["results"]) {
    CAPTURE(row.dump());
    operations.insert(row["op"]);
    CHECK(row["out_of_place"]["wrong"] == 0);
    CHECK(row["out_of_place"]["time_us"] > 0);
    if (!row["in_place"]["time_us"].is_null()) CHECK(row["in_place"]["wrong"] == 0);
  }
  CHECK(operations.size() == 10);
  CHECK(report["out_of_bounds"] == 0);
}

TEST_CASE("every type and reduction is right", "[cmd]") {
  const json report = run_json({"--nproc", "3", "-d", "all", "-o", "all", "-e", "24"});
  CHECK(report["results"].size() == 8 * 6 + 4 * 6);
  for (const json& row : report["results"]) CHECK(row["in_place"]["wrong"] == 0);
}

TEST_CASE("the text is nccl-tests' table", "[cmd]") {
  const Outcome outcome = run_test({"--nproc", "2", "--check", "-S", "1", "-I", "1"});
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(rows_of(outcome.out).size() == 3);
  CHECK(contains(outcome.out, "# Collective test starting: all_reduce\n"));
  CHECK(contains(outcome.out, "# Out of bounds values : 0 OK\n"));
  CHECK(contains(outcome.out, "# Avg bus bandwidth    : "));
  const Outcome unchecked = run_test({"-c", "0", "-N", "2"});
  CHECK(rows_of(unchecked.out).size() == 6);
  CHECK(contains(rows_of(unchecked.out)[0], "N/A"));
}

TEST_CASE("results go to a file, and pass as the baseline of the next run", "[cmd]") {
  const TemporaryDirectory directory;
  const std::string file = directory / "run.json";
  REQUIRE(run_test({"--nproc", "2", "-J", file}).code == 0);
  json report = json::parse(read_text(file));
  CHECK(report["schema"] == "gxp.allreduce-test/1");
  const Arguments compare = {"--nproc", "2", "--baseline", file, "--tolerance", "1000000%"};
  CHECK(run_test(compare).code == 0);
  for (json& row : report["results"]) row["in_place"]["time_us"] = 1e-9;
  std::ofstream(file) << report;
  const Outcome slower = run_test(compare);
  CAPTURE(slower.err);
  CHECK(slower.code == 1);
  CHECK(contains(slower.err, "all_reduce 24 B f32 sum, in place: "));
}

TEST_CASE("a bandwidth that is not reached ends with code 1", "[cmd]") {
  const Outcome outcome = run_test({"--nproc", "2", "--min-bw", "1e6"});
  CHECK(outcome.code == 1);
  CHECK(contains(outcome.out, "FAILED"));
  CHECK(contains(outcome.err, "below 90% of 1e+06"));
}

TEST_CASE("--explain starts no ranks", "[cmd]") {
  const TemporaryDirectory directory;
  const std::string svg = directory / "steps.svg";
  const Outcome outcome =
      run_test({"--nproc", "64", "--explain", "--algorithm", "ring", "--svg", svg});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(contains(outcome.out, "ranks: 64\n"));
  CHECK(contains(outcome.out, "all_reduce of 96 B f32 by ring on 64 ranks"));
  CHECK(contains(read_text(svg), "<svg"));
}

TEST_CASE("what was calibrated is what every rank chooses by", "[cmd]") {
  const TemporaryDirectory directory;
  const Surroundings home{.environment = {{"GXP_PROFILE", directory / "cache/profile.toml"}},
                          .file_bytes = 0};
  const auto plans = [&] {
    return run_gxp({"allreduce-test", "--nproc", "2", "--explain", "--format", "json"}, home).out;
  };
  const std::string before = plans();
  // It times hundreds of calls, for some seconds where nothing else runs.
  Process calibration(gxp_argv({"allreduce-test", "--calibrate", "--nproc", "2", "-e", "1M"}),
                      home);
  const Outcome outcome = calibration.end(Deadline::after(std::chrono::minutes(5)));
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(contains(outcome.out, "staged-all-reduce"));
  CHECK(contains(read_text(directory / "cache/profile.toml"), "[shm-2]"));
  CHECK(plans() != before);
  CHECK(run_gxp({"allreduce-test", "--nproc", "2", "-n", "1"}, home).code == 0);
  std::ofstream(directory / "cache/profile.toml") << "nonsense";
  CHECK(run_gxp({"allreduce-test", "--nproc", "2", "-n", "1"}, home).code == 4);
}

TEST_CASE("--simulate runs thousands of ranks without any", "[cmd]") {
  const TemporaryDirectory directory;
  const std::string cluster = std::string(GXP_SOURCE_DIR) + "/examples/cluster.toml";
  const std::string trace = directory / "trace.json";
  const json report = run_json({"--simulate", cluster, "--ranks", "512", "--trace", trace, "--op",
                                "broadcast", "-b", "1M", "-e", "4M", "-f", "4"});
  CHECK(report["world_size"] == 512);
  REQUIRE(report["results"].size() == 2);
  CHECK(report["results"][0]["time_us"] < report["results"][1]["time_us"]);
  CHECK(report["links"][0]["utilisation"] > 0);
  CHECK(json::parse(read_text(trace))["traceEvents"].size() > 512);
}

TEST_CASE("--simulate profile takes the measured links of the transport", "[cmd]") {
  const TemporaryDirectory directory;
  const std::string profile = directory / "profile.toml";
  std::ofstream(profile) << "[machine]\nversion = 2\ncpu = \"any\"\ncores = 64\n"
                            "[verbs-2]\ntransport = \"verbs\"\nranks = 2\nhosts = 1\n"
                            "copy = [\"8 1e-7\"]\nexchange = [\"8 2e-6\", \"1048576 1e-3\"]\n"
                            "fold = [\"8 1e-9\"]\nfold-later = [\"8 1e-9\"]\n"
                            "hop = [\"8 1e-6\", \"1048576 1e-3\"]\n"
                            "start = [\"1 1e-6\"]\nswap = [\"1 1e-6\"]\n";
  const json report =
      run_json({"--simulate", "profile", "--profile", profile, "--transport", "verbs", "--nproc",
                "2", "--op", "all_gather", "-b", "2M", "-e", "2M"});
  CHECK(report["measured_over"] == "verbs among 2 ranks");
  CHECK(report["world_size"] == 2);
  CHECK(report["results"][0]["time_us"].get<double>() == Approx(1e3));  // one exchange of 1 MiB
}

TEST_CASE("ranks with different options are told which", "[cmd]") {
  const ReservedPort port;
  const auto host = [&](const std::string& number, const std::string& iterations) {
    return gxp_argv({"allreduce-test", "-b", "8", "-e", "8", "-n", iterations, "--nnodes", "2",
                     "--node-rank", number, "--master", port.master()});
  };
  const Surroundings surroundings{.environment = {{"GXP_JOB_SECRET", std::string(64, 'a')}},
                                  .file_bytes = 0};
  Process first(host("0", "2"), surroundings);
  Process second(host("1", "3"), surroundings);
  const Outcome outcome = first.end();
  CHECK(outcome.code == 2);
  CHECK(contains(outcome.err, "iters: 2 on rank 0, 3 on rank 1"));
  CHECK(second.end().code == 2);
}

TEST_CASE("a device that is not here is refused with the reason", "[cmd]") {
  const Outcome outcome = run_test({"--device", "cuda", "--nproc", "2"});
  CAPTURE(outcome.err);
  if (outcome.code == 0) {  // it is here
    CHECK(contains(outcome.out, "# Device cuda"));
    return;
  }
  CHECK(outcome.code == 3);
  CHECK(outcome.out.empty());
  CHECK(outcome.errors().size() == 1);
  CHECK(contains(outcome.err, "measure on --device cuda: "));
  CHECK(contains(outcome.err, "; use cpu"));
}

TEST_CASE("a wrong command line is refused before ranks are started", "[cmd]") {
  const auto [arguments, code, word] = GENERATE(table<Arguments, int, std::string>({
      {{"-b", "128"}, 2, "--minbytes 128 B is above --maxbytes 96 B"},
      {{"-b", "much"}, 2, "must be a size such as 8, 64K or 1.5G, is 'much'"},
      {{"-f", "1"}, 2, "must be from 2"},
      {{"-n", "0"}, 2, "must be from 1"},
      {{"-c", "-1"}, 2, "must be a count"},
      {{"-z", "0"}, 2, "a call returns when it is done; use 2"},
      {{"-g", "8"}, 2, "each rank has one GPU; use --nproc with --device cuda"},
      {{"-G", "1"}, 2, "the host orders the steps of a call, so a graph cannot record it"},
      {{"-R", "2"}, 2, "use --memory communicator"},
      {{"--op", "sum"}, 2, "the reduction is -o sum"},
      {{"--op", "all_reduse"}, 2, "did you mean 'all_reduce'"},
      {{"-o", "band"}, 2, "band is not defined for f32"},
      {{"-d", "flot"}, 2, "did you mean 'float'"},
      {{"--op", "broadcast", "-r", "2", "--nproc", "2"}, 2, "--root 2: the ranks are 0 to 1"},
      {{"--algorithm", "rings", "--nproc", "2"}, 2, "rings"},
      {{"--transport", "carrier"}, 2, "comm.transport"},
      {{"--memory", "shared"}, 2, "must be one of: communicator, ordinary"},
      {{"--device", "tpu"}, 2, "must be one of: cpu, cuda"},
      {{"--device", "cuda", "--explain"}, 2, "support only host memory"},
      {{"--tolerance", "much"}, 2, "must be a percentage"},
      {{"--svg", "x.svg"}, 2, "it needs --explain"},
      {{"--trace", "x.json"}, 2, "it needs --simulate"},
      {{"--simulate", "profile", "--ranks", "8"}, 2, "it needs --simulate with a cluster file"},
      {{"--simulate", "profile", "--nproc", "1"}, 2, "one rank has no links"},
      {{"--simulate", "x.toml", "--explain"}, 2, "exclude each other"},
      {{"--simulate", "/nowhere/x.toml"}, 4, "/nowhere/x.toml"},
      {{"--calibrate"}, 2, "one rank has no links"},
      {{"--profile", "/nowhere/x.toml", "--nproc", "2"}, 4, "read profile /nowhere/x.toml"},
      {{"-N", "0", "--format", "json"}, 2, "--run_cycles 0"},
      {{"-e", "1000000G", "-f", "1000000", "--nproc", "2"}, 4, "are available; lower --maxbytes"},
      {{"-J", "/nowhere/run.json", "--nproc", "2"}, 4, "write /nowhere/run.json"},
      {{"--baseline", "/nowhere/run.json"}, 4, "read baseline /nowhere/run.json"},
  }));
  CAPTURE(arguments);
  const Outcome outcome = run_test(arguments);
  CAPTURE(outcome.err);
  CHECK(outcome.code == code);
  CHECK(outcome.out.empty());
  CHECK(outcome.errors().size() == 1);
  CHECK(contains(outcome.err, word));
}

TEST_CASE("a rank that is stopped or killed is named, and its record stays", "[cmd]") {
  const auto [number, verdict] =
      GENERATE(table<int, std::string>({{SIGSTOP,
                                         "rank 1: it does not respond, its process may be stopped, "
                                         "or its host out of reach; needed for "},
                                        {SIGKILL, "rank 1: Its last operation: "}}));
  const TemporaryDirectory directory;
  const std::string records = directory / "records";
  Process launcher(gxp_argv({"allreduce-test", "--nproc", "3", "-N", "0", "-b", "8", "-e", "8",
                             "-T", "0.3", "--flight-recorder", records}));
  const pid_t victim = working_rank(records, "1");
  REQUIRE(victim > 0);
  ::kill(victim, number);
  // Beside the victim there is the launcher, which would kill it later.
  CHECK(poll_until([&] { return processes_with(records).size() <= 2; }));
  ::kill(victim, SIGKILL);
  const Outcome outcome = launcher.end();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 5);
  CHECK(contains(outcome.err, "gxp[rank 0, 2] error " + verdict));
  CHECK_FALSE(contains(outcome.err, "was it killed?"));
  const Outcome shown = run_gxp({"allreduce-test", "--show-record", records});
  CHECK(shown.code == 0);
  CHECK(contains(shown.out, "rank 1 of 3, process " + std::to_string(victim)));
  CHECK(contains(shown.out, "last ranks of calls"));
}

TEST_CASE("flags of nccl-tests that are off are taken", "[cmd]") {
  CHECK(run_test({"-g", "1", "-t", "1", "-p", "0",  "-G", "0", "-z", "1",
                  "-a", "1", "-m", "2", "-T", "30", "-u", "1", "-r", "0"})
            .code == 0);
}

}  // namespace gxp
