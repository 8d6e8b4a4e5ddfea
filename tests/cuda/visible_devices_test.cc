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
               Catch::Contains("ranks 0, 1 share GPU-00000000-0000-0000-0000-000000000000, "
                               "while rank 1 also sees "
                               "GPU-00000000-0000-0000-0000-000000000001, which no rank"));
  }
}

}  // namespace gxp
