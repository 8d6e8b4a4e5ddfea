#include "lib/train/keep_choice.h"

#include "tests/catch.h"
#include "tests/collective/run_ranks.h"
#include "tests/train/golden.h"

namespace gxp {
namespace {

// What each rank keeps where these of them have chosen the norms.
std::vector<std::string> settled(const std::string& setting, const std::vector<bool>& chosen) {
  const RunConfig config = golden_config("gpt2-tiny", 1, {"train.keep=" + setting});
  return run_ranks(int(chosen.size()), [&](Communicator& communicator) {
    RunConfig run = config;
    settle_keep(run, {.norms = chosen[size_t(communicator.rank())], .reason = {}}, communicator);
    return std::string(run.train.keep);
  });
}

}  // namespace

TEST_CASE("auto keeps the norms' outputs where a sixteenth of the free memory is left") {
  const auto [with_norms, free, norms] = GENERATE(table<uint64_t, uint64_t, bool>(
      {{15, 16, true}, {16, 16, false}, {150, 160, true}, {151, 160, false}, {1, 0, false}}));
  const KeepChoice choice =
      choose_keep({.with_norms = with_norms << 30, .without = 1 << 30}, free << 30);
  CAPTURE(with_norms, free, choice.reason);
  CHECK(choice.norms == norms);
  CHECK(choice.reason.starts_with(norms ? "norms: " : "none: "));
}

TEST_CASE("auto keeps the norms' outputs where the reserve is left, too") {
  const auto keeps = [](uint64_t with_norms) {
    return choose_keep({.with_norms = with_norms, .without = 1, .reserve = 30}, 160).norms;
  };
  CHECK(keeps(130));
  CHECK_FALSE(keeps(131));
}

TEST_CASE("auto becomes the least that a rank has chosen, a setting stays") {
  using Names = std::vector<std::string>;
  CHECK(settled("auto", {true, true, true}) == Names(3, "norms"));
  CHECK(settled("auto", {true, true, false}) == Names(3, "none"));
  CHECK(settled("all", {true, false}) == Names(2, "all"));
}

}  // namespace gxp
