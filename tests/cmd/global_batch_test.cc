// train.global_batch: one batch on any number of ranks.
#include <filesystem>

#include "tests/catch.h"
#include "tests/cmd/golden_run.h"

namespace gxp {
namespace {

std::vector<std::string> on_ranks(const std::string& nproc, const std::vector<std::string>& more) {
  return Arguments{"--nproc", nproc,
                   "--set",   "train.grad_accum=1",
                   "--set",   "train.global_batch=8",
                   "--set",   "train.deterministic=any-world-size"} +
         more;
}

}  // namespace

TEST_CASE("with a global batch, any number of ranks trains to the same weights", "[cmd]") {
  static const std::string expected = [] {
    const GoldenRun run;
    REQUIRE(run.run(on_ranks("1", {"--set", "train.steps=12"})).code == 0);
    return run.weights();
  }();
  const auto [first, then] =
      GENERATE(table<std::string, std::string>({{"4", "2"}, {"2", "8"}, {"1", "4"}}));
  const GoldenRun run;
  REQUIRE(run.run(on_ranks(first, {"--set", "train.steps=12", "--set", "checkpoint.every=7",
                                   "--set", "checkpoint.keep=0"}))
              .code == 0);
  CHECK(run.weights() == expected);
  std::filesystem::remove_all(run.path("run/ckpt/step-00000012"));
  const Outcome resumed = run.run(on_ranks(then, {"--set", "train.steps=12", "--resume"}));
  CAPTURE(first, then, resumed.err);
  REQUIRE(resumed.code == 0);
  CHECK_FALSE(contains(resumed.err, "warn resume: "));
  CHECK(run.weights() == expected);
}

TEST_CASE("ranks that cannot share the global batch are refused before they start", "[cmd]") {
  const GoldenRun run;
  const Outcome outcome = run.run(on_ranks("3", {}));
  CHECK(outcome.code == 2);
  CHECK(outcome.err ==
        "gxp: error: train.global_batch 8: it must be a multiple of train.micro_batch x ranks, 1 x "
        "3 = 3; the nearest are 6 and 9\n");
}

}  // namespace gxp
