#include "lib/tools/planner/train_plan.h"

#include <fmt/format.h>

#include <string>

#include "tests/catch.h"

namespace gxp {
namespace {

std::string gib(uint64_t bytes, int digits) {
  return fmt::format("{:.{}f}", double(bytes) / (1 << 30), digits);
}

PublishedModel gpt(uint64_t layers, uint64_t hidden, uint64_t heads) {
  return {.layers = layers, .hidden = hidden, .heads = heads};
}

uint64_t all_layers(const PublishedModel& model, const ActivationBatch& batch,
                    Recompute recompute) {
  return model.layers * layer_activations(model, batch, recompute);
}

// A model with one micro-batch, and its GiB under each recomputation, to the digits given.
struct ActivationRow {
  const char* name;
  PublishedModel model;
  ActivationBatch batch;
  std::array<int, 3> digits;
  std::array<const char*, 3> kept;
};

const std::array<ActivationRow, 6> kRows = {{
    {"GPT-3", gpt(96, 12288, 96), {2048}, {1, 1, 1}, {"256.5", "76.5", "4.5"}},
    {"GPT-2", gpt(12, 768, 12), {1024, 4}, {3, 3, 3}, {"4.008", "1.195", "0.070"}},
    {"GPT-2 XL", gpt(48, 1600, 25), {1024, 8}, {1, 1, 2}, {"66.8", "19.9", "1.17"}},
    {"Llama 7B", gpt(32, 4096, 32), {4096}, {0, 0, 0}, {"97", "17", "1"}},
    {"Llama 3 8B", gpt(32, 4096, 32), {8192}, {0, 0, 0}, {"354", "34", "2"}},
    {"22B", gpt(48, 6144, 64), {2048, 4, 8, true}, {1, 2, 2}, {"39.6", "9.56", "0.56"}},
}};

TEST_CASE("activations are the worked values of Korthikanti's table", "[estimate]") {
  for (const ActivationRow& row : kRows) {
    for (size_t i = 0; i < kRecomputeNames.size(); ++i) {
      CAPTURE(row.name, kRecomputeNames[i]);
      CHECK(gib(all_layers(row.model, row.batch, Recompute(i)), row.digits[i]) == row.kept[i]);
    }
  }
}

TEST_CASE("tensor parallelism without sequence parallelism keeps ten bytes whole", "[estimate]") {
  CHECK(gib(all_layers(gpt(48, 6144, 64), {2048, 4, 8, false}, Recompute::kNone), 2) ==
        "59.25");  // figure 1, 22B
}

TEST_CASE("a layer that is computed again is one of the whole", "[estimate]") {
  CHECK(gib(layer_activations(kRows[0].model, kRows[0].batch, Recompute::kNone), 2) == "2.67");
}

TEST_CASE("selective recomputation saves the share that the scores have", "[estimate]") {
  const auto [heads, hidden, saved] =
      GENERATE(table<uint64_t, uint64_t, std::string>({{96, 12288, "70"},    // 175B
                                                       {128, 20480, "65"},   // 530B
                                                       {64, 6144, "76"}}));  // 22B
  const PublishedModel model = gpt(1, hidden, heads);
  const double kept = double(layer_activations(model, {2048}, Recompute::kSelective)) /
                      double(layer_activations(model, {2048}, Recompute::kNone));
  CHECK(fmt::format("{:.0f}", 100 * (1 - kept)) == saved);
}

}  // namespace
}  // namespace gxp
