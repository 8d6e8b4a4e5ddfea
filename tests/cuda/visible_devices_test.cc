// Ranks as processes whose launcher shows each some emulated GPUs by CUDA_VISIBLE_DEVICES.
#include <fmt/format.h>

#include <regex>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"
#include "tests/cmd/reserved_port.h"

namespace gxp {
namespace {

// What becomes of `gxp ARGUMENTS` as ranks of one host, which see these GPUs.
std::vector<Outcome> run_ranks_seeing(const std::vector<std::string>& visible,
                                      const std::vector<std::string>& arguments) {
  const ReservedPort port;
  const std::string& master = port.master();
  const size_t colon = master.find(':');
  std::vector<std::unique_ptr<Process>> ranks;
  for (size_t rank = 0; rank < visible.size(); ++rank)
    ranks.push_back(std::make_unique<Process>(
        gxp_argv(arguments),
        Surroundings{.environment = {{"GXP_JOB_SECRET", std::string(64, 'd')},
                                     {"RANK", fmt::format("{}", rank)},
                                     {"LOCAL_RANK", fmt::format("{}", rank)},
                                     {"WORLD_SIZE", fmt::format("{}", visible.size())},
                                     {"LOCAL_WORLD_SIZE", fmt::format("{}", visible.size())},
                                     {"MASTER_ADDR", master.substr(0, colon)},
                                     {"MASTER_PORT", master.substr(colon + 1)},
                                     {"CUDA_VISIBLE_DEVICES", visible[rank]}}}));
  std::vector<Outcome> outcomes;
  for (const auto& rank : ranks) outcomes.push_back(rank->end());
  return outcomes;
}

// GiB in "free on cuda:0, emulated GPU, 8.00 GiB, sm_90 3.97 GiB: a rank of 2 needs"; -1 without.
double gib_planned_with(const std::string& text) {
  std::smatch found;
  const std::regex line("free on cuda:[^:]* ([0-9.]+) GiB: a rank of");
  return std::regex_search(text, found, line) ? std::stod(found[1]) : -1;
}

}  // namespace

TEST_CASE("a rank plans with its GPU's memory, or its share where ranks have the same GPU",
          "[visible]") {
  const auto [visible, gib] =
      GENERATE(table<std::vector<std::string>, double>({{{"0", "1"}, 8},  // each is shown its own
                                                        {{"0", "0"}, 4},  // both are shown one
                                                        {{"0,1", "0,1"}, 8},
                                                        {{"3"}, 8}}));
  CAPTURE(visible);
  const GoldenRun run;
  const auto ranks = run_ranks_seeing(
      visible, run.train({"--set", "train.device=cuda", "--set", "train.gemm_cache=off", "--set",
                          "model.hidden=8192", "--set", "model.init=normal"}));
  for (const Outcome& rank : ranks) {
    CAPTURE(rank.err);
    CHECK(rank.code != 0);
    CHECK(gib_planned_with(rank.err) == Approx(gib).epsilon(0.03));
  }
}

TEST_CASE("a launcher that shows GPUs in an order by which some stay idle is told", "[visible]") {
  const auto ranks = run_ranks_seeing(
      {"0", "1,0"}, {"allreduce-test", "--device", "cuda", "-b", "16", "-e", "16"});
  for (const Outcome& rank : ranks) {
    CHECK(rank.code == 2);
    CHECK_THAT(rank.err,
               Catch::Contains("ranks 0, 1 would share GPU-00000000-0000-0000-0000-000000000000, "
                               "although rank 1 also sees "
                               "GPU-00000000-0000-0000-0000-000000000001, which no rank"));
  }
}

TEST_CASE("--nproc takes a number or gpu", "[visible]") {
  const std::string nproc = GENERATE("gpus", "0", "4097", "");
  const Outcome done = run_gxp({"train", "run.toml", "--nproc", nproc});
  CHECK(done.code == 2);
  CHECK_THAT(done.err, Catch::Contains("--nproc: must be from 1 to 4096, or gpu: one for each GPU "
                                       "that gxp sees, is '" +
                                       nproc + "'"));
}

TEST_CASE("--nproc gpu starts a rank for each GPU that is visible", "[visible]") {
  const std::vector<std::string> command = {
      "allreduce-test", "--device", "cuda", "--nproc", "gpu", "-b", "16", "-e", "16"};
  const std::string list = GENERATE("4,1", "2", "");
  CAPTURE(list);
  const Outcome done =
      run_gxp(command, Surroundings{.environment = {{"CUDA_VISIBLE_DEVICES", list}}});
  CAPTURE(done.out, done.err);
  if (list.empty()) {
    CHECK(done.code == 3);
    CHECK_THAT(done.err, Catch::Contains("start a rank for each GPU: the NVIDIA driver shows no "
                                         "GPU; is CUDA_VISIBLE_DEVICES empty?; give --nproc"));
    return;
  }
  CHECK(done.code == 0);
  CHECK_THAT(done.out, Catch::Contains(list == "2" ? "1 ranks over" : "2 ranks over"));
}

}  // namespace gxp
