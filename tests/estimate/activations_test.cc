#include "lib/estimate/activations.h"

#include <fmt/format.h>

#include <string>

#include "tests/catch.h"

namespace gxp {
namespace {

std::string gib(uint64_t bytes, int digits) {
  return fmt::format("{:.{}f}", double(bytes) / (1 << 30), digits);
}

// A model with one micro-batch, and its GiB under each recomputation, to the digits given.
struct ActivationRow {
  const char* name;
  ActivationShape shape;
  std::array<int, 3> digits;
  std::array<const char*, 3> kept;
};

const std::array<ActivationRow, 6> kRows = {{
    {"GPT-3", {96, 12288, 96, 2048}, {1, 1, 1}, {"256.5", "76.5", "4.5"}},
    {"GPT-2", {12, 768, 12, 1024, 4}, {3, 3, 3}, {"4.008", "1.195", "0.070"}},
    {"GPT-2 XL", {48, 1600, 25, 1024, 8}, {1, 1, 2}, {"66.8", "19.9", "1.17"}},
    {"Llama 7B", {32, 4096, 32, 4096}, {0, 0, 0}, {"97", "17", "1"}},
    {"Llama 3 8B", {32, 4096, 32, 8192}, {0, 0, 0}, {"354", "34", "2"}},
    {"22B", {48, 6144, 64, 2048, 4, 8, true}, {1, 2, 2}, {"39.6", "9.56", "0.56"}},
}};

TEST_CASE("activations are the worked values of Korthikanti's table", "[estimate]") {
  for (const ActivationRow& row : kRows) {
    for (size_t i = 0; i < kRecomputeNames.size(); ++i) {
      CAPTURE(row.name, kRecomputeNames[i]);
      CHECK(gib(kept_activations(row.shape, Recompute(i)), row.digits[i]) == row.kept[i]);
    }
  }
}

TEST_CASE("tensor parallelism without sequence parallelism keeps ten bytes whole", "[estimate]") {
  const ActivationShape shape{48, 6144, 64, 2048, 4, 8, false};
  CHECK(gib(kept_activations(shape, Recompute::kNone), 2) == "59.25");  // figure 1, 22B
}

TEST_CASE("full recomputation has one layer live", "[estimate]") {
  CHECK(gib(live_layer(kRows[0].shape, Recompute::kFull), 2) == "2.67");
  CHECK(live_layer(kRows[0].shape, Recompute::kSelective) == 0);
}

TEST_CASE("selective recomputation saves the share that the scores have", "[estimate]") {
  const auto [heads, hidden, saved] =
      GENERATE(table<uint64_t, uint64_t, std::string>({{96, 12288, "70"},    // 175B
                                                       {128, 20480, "65"},   // 530B
                                                       {64, 6144, "76"}}));  // 22B
  const ActivationShape shape{1, hidden, heads, 2048};
  const double kept = double(kept_activations(shape, Recompute::kSelective)) /
                      double(kept_activations(shape, Recompute::kNone));
  CHECK(fmt::format("{:.0f}", 100 * (1 - kept)) == saved);
}

}  // namespace
}  // namespace gxp
