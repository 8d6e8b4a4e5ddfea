// gxp allreduce-test --device cuda as its users run it, on emulated GPUs: processes, tables, JSON.
#include <nlohmann/json.hpp>

#include "lib/tools/colltest/runner.h"
#include "tests/catch.h"
#include "tests/cmd/run_gxp.h"
#include "tests/collective/run_ranks_of.h"
#include "tests/cuda/device_ranks.h"
#include "tests/cuda/emulation/cuda_runtime_api.h"

namespace gxp {
namespace {

using nlohmann::json;

Outcome run_bench(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"allreduce-test",
                                        "--device",
                                        "cuda",
                                        "-b",
                                        "512K",
                                        "-e",
                                        "1M",
                                        "-f",
                                        "2",
                                        "-n",
                                        "2",
                                        "-w",
                                        "0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_gxp(arguments);
}

}  // namespace

TEST_CASE("processes measure every operation on GPUs, and the JSON tells where", "[bench]") {
  const Outcome done =
      run_bench({"--op", "all", "--nproc", "2", "--memory", "communicator", "--format", "json"});
  CAPTURE(done.err);
  REQUIRE(done.code == 0);
  const json report = json::parse(done.out);
  CHECK(report["wrong"] == 0);
  CHECK(report["device"] == "cuda");
  CHECK(report["collectives_on"] == "the GPUs' memory");
  CHECK(report["messages_on"] ==
        "pinned host memory: engine 'native' over transport shm sends host memory only");
  CHECK(report["devices"][1]["gpu"] == 0);
  CHECK(report["devices"][1]["bus_id"] == "0000:3B:00.0");
  REQUIRE(report["copies"].size() == 3);  // two ranks' own, and out of the other's
  CHECK(report["copies"][2]["from_rank"] == 0);
  CHECK(report["copy_gb_per_s"] == report["copies"][0]["gb_per_s"]);
  for (const json& row : report["results"]) {
    const json& share = row["in_place"]["copy_share"];
    const double time_s =
        row["op"] == "all_reduce" ? row["in_place"]["time_us"].get<double>() / 1e6 : 0;
    if (row["op"] != "all_reduce") CHECK(share.is_null());
    if (row["op"] != "all_reduce") continue;
    const double rate = report["copy_gb_per_s"].get<double>() * 1e9;
    CHECK(share.get<double>() == Approx(2.0 * 2 * row["size"].get<double>() / rate / time_s));
  }
}

TEST_CASE("the table names the device, each rank's GPU, the memory and the copies", "[bench]") {
  const Outcome done = run_bench({"--nproc", "2"});
  CAPTURE(done.out, done.err);
  REQUIRE(done.code == 0);
  for (const char* line :
       {"2 ranks over shm, ordinary memory of GPUs\n",
        "device  0 [0000:3B:00] cuda:0, emulated GPU, 8 GiB, sm_90\n",
        "# Device cuda, engine native: collectives work on the GPUs' memory\n",
        "GB/s read and written in the memory of its own GPU\n",
        "# Copies by rank 1: ", "GB/s out of the mapped memory of rank 0's GPU\n",
        "# The GPUs' copies would read and write 2 p K bytes (p = 2 ranks of K bytes) at "})
    CHECK_THAT(done.out, Catch::Contains(line));
}

TEST_CASE("GPUs that do not reach each other are measured through pinned memory", "[bench]") {
  const EmulatedGpus gpus(2, false);
  const auto results = run_ranks_of("shm", 2, [](Communicator& comm) {
    const auto device = make_cuda_device(comm.rank());
    const auto folds = make_cuda_folds();
    std::vector<BenchCase> cases;
    for (const BenchOperation& operation : operations())
      cases.push_back({&operation, DType::kF32, ReduceOp::kSum, 0, 4000});
    CaseRunner runner(comm, {*device, folds.get(), comm.rank()}, cases,
                      {.iterations = 2, .warmup = 0, .unalign = 1});
    std::string wrong;
    for (const BenchCase& bench : cases) {
      const CaseResult result = runner.run(bench);
      const bool is_exact = result.out_of_place.wrong.value_or(0) == 0 &&
                            (!result.in_place || result.in_place->wrong.value_or(0) == 0);
      if (!is_exact) wrong += std::string(bench.operation->name) + " is wrong; ";
    }
    return wrong + runner.medium().of_collectives();
  });
  CHECK(results[0] ==
        "pinned host memory: rank 0: GPU 0 has no peer access to GPU 1 (gxp topo shows P2P)");
}

TEST_CASE("what --device cuda cannot do is refused before ranks start", "[bench]") {
  const auto [more, words] = GENERATE(table<std::vector<std::string>, std::string>(
      {{{"--explain"}, "--explain, --calibrate and --simulate support only host memory"},
       {{"--codec", "int8"}, "--codec int8: codecs work on host memory"},
       {{"-b", "64G", "-e", "64G"}, "lower --maxbytes or start fewer ranks"}}));
  const Outcome done = run_bench(more);
  CAPTURE(done.err);
  CHECK(done.code != 0);
  CHECK_THAT(done.err, Catch::Contains(words));
}

}  // namespace gxp
