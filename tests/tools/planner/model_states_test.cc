#include "lib/tools/planner/model_states.h"

#include <fmt/format.h>

#include <string>

#include "lib/base/error.h"
#include "lib/tools/planner/predict_memory.h"
#include "tests/catch.h"

namespace gxp {
namespace {

Training train(uint64_t parameters, const char* precision = "fp16",
               const char* optimizer = "adamw") {
  return {parameters, find_precision(precision), find_optimizer_state(optimizer)};
}

uint64_t total(const Training& training, const Placement& placement) {
  return model_states(training, placement).total();
}

std::string gb(uint64_t bytes, int digits = 2) {
  return fmt::format("{:.{}f}", double(bytes) / 1e9, digits);
}

std::string gib(uint64_t bytes) { return fmt::format("{:.2f}", double(bytes) / (1 << 30)); }

// One size and number of GPUs, with the decimal GB of stages 0 to 3.
struct Row {
  uint64_t parameters;
  int gpus;
  std::array<const char*, 4> gb;
};

TEST_CASE("model states are those of the ZeRO paper's tables", "[estimate]") {
  const auto row = GENERATE(Row{7'500'000'000, 4, {"120.00", "52.50", "41.25", "30.00"}},
                            Row{7'500'000'000, 16, {"120.00", "35.62", "21.56", "7.50"}},
                            Row{7'500'000'000, 64, {"120.00", "31.41", "16.64", "1.88"}},
                            Row{7'500'000'000, 256, {"120.00", "30.35", "15.41", "0.47"}},
                            Row{7'500'000'000, 1024, {"120.00", "30.09", "15.10", "0.12"}},
                            Row{128'000'000'000, 64, {"2048.00", "536.00", "284.00", "32.00"}},
                            Row{7'000'000'000, 8, {"112.00", "38.50", "26.25", "14.00"}});
  for (int stage = 0; stage <= kMostStage; ++stage) {
    CAPTURE(row.parameters, row.gpus, stage);
    CHECK(gb(total(train(row.parameters), {stage, row.gpus})) == row.gb[size_t(stage)]);
  }
}

TEST_CASE("a trillion parameters on 1024 GPUs take what the ZeRO paper says", "[estimate]") {
  const auto [stage, expected] = GENERATE(
      table<int, std::string>({{0, "16000.0"}, {1, "4011.7"}, {2, "2013.7"}, {3, "15.6"}}));
  CHECK(gb(total(train(1'000'000'000'000), {stage, 1024}), 1) == expected);
}

TEST_CASE("GB and GiB of the same states differ as they should", "[estimate]") {
  const auto [stage, expected] =
      GENERATE(table<int, std::string>({{0, "104.31"}, {1, "35.86"}, {2, "24.45"}, {3, "13.04"}}));
  CHECK(gib(total(train(7'000'000'000), {stage, 8})) == expected);
}

TEST_CASE("each precision and optimizer has its bytes per parameter", "[estimate]") {
  const auto [precision, optimizer, bytes] =
      GENERATE(table<const char*, const char*, uint64_t>({{"fp32", "adamw", 16},
                                                          {"fp16", "adam", 16},
                                                          {"bf16", "adamw", 16},
                                                          {"bf16-fp32-grads", "adamw", 18},
                                                          {"pure-bf16", "adamw", 8},
                                                          {"fp32", "sgd", 8},
                                                          {"bf16", "sgd", 8},
                                                          {"bf16", "momentum", 12},
                                                          {"bf16", "lion", 12},
                                                          {"bf16", "adafactor", 8},
                                                          {"bf16", "muon", 12},
                                                          {"bf16", "adamw-bf16", 12},
                                                          {"fp32", "adamw-int8", 10}}));
  CAPTURE(precision, optimizer);
  const uint64_t scales = std::string(optimizer) == "adamw-int8" ? 8 * 4 : 0;
  CHECK(total(train(1000, precision, optimizer), {0, 1}) == 1000 * bytes + scales);
}

TEST_CASE("Muon keeps AdamW's second moments of all but the blocks' matrices", "[estimate]") {
  const PublishedModel& gpt2 = find_published_model("gpt2");
  // Two embeddings; of 12 blocks two norms and four biases; the last norm.
  const uint64_t others = (50257 + 1024) * 768 + 12 * (4 * 768 + (3 + 1 + 4 + 1) * 768) + 2 * 768;
  CHECK(other_parameter_count(gpt2) == others);
  const TrainCase question{.model = &gpt2,
                           .plan = {.sequence = 0, .gpus = 8, .stage = 2},
                           .optimizer = &find_optimizer_state("muon")};
  CHECK(predict_memory(question).states.moments ==
        4 * (parameter_count(gpt2) / 8) + 4 * ((others + 7) / 8));
}

TEST_CASE("a shard is rounded up to whole elements, and never all of them to bytes", "[estimate]") {
  const ModelStates states = model_states(train(10), {.stage = 3, .gpus = 4});
  CHECK(states.parameters == 2 * 3);
  CHECK(states.gradients == 2 * 3);
  CHECK(states.master_weights == 4 * 3);
  CHECK(states.moments == 8 * 3);
  CHECK(total(train(1), {.stage = 3, .gpus = 64}) == 16);
}

TEST_CASE("a hybrid has the bytes of its shard group, whatever the replicas", "[estimate]") {
  const int stage = GENERATE(0, 1, 2, 3);
  CHECK(total(train(1001), {.stage = stage, .gpus = 64, .shard = 8}) ==
        total(train(1001), {.stage = stage, .gpus = 8}));
}

TEST_CASE("the lines of an explanation add up to the total", "[estimate]") {
  const auto& precision = GENERATE(from_range(precisions().begin(), precisions().end()));
  const int stage = GENERATE(0, 1, 2, 3);
  const std::string optimizer = GENERATE("adamw", "adamw-int8");
  const Training training{1001, precision, find_optimizer_state(optimizer)};
  uint64_t sum = 0;
  for (const Term& term : explain_model_states(training, {stage, 7})) sum += term.bytes;
  CHECK(sum == total(training, {stage, 7}));
}

TEST_CASE("an explanation shows the formula, the numbers and the source", "[estimate]") {
  const Term term = explain_model_states(train(7'000'000'000), {.stage = 2, .gpus = 8})[1];
  CHECK(term.component == "gradients");
  CHECK(term.formula == "2 ceil(P / S)");
  CHECK(term.numbers == "2 x ceil(7000000000 / 8)");
  CHECK(term.bytes == 1'750'000'000);
  CHECK(contains(term.source, "arXiv:1910.02054"));
}

TEST_CASE("the largest job's bytes do not overflow", "[estimate]") {
  CHECK(total(train(kMostParameters, "bf16-fp32-grads"), {0, 1}) == 18 * kMostParameters);
}

TEST_CASE("a misspelt precision or optimizer gets the nearest name", "[estimate]") {
  CHECK_THROWS_WITH(find_precision("pf16"), Catch::Contains("did you mean 'fp16'"));
  CHECK_THROWS_WITH(find_optimizer_state("adamv"), Catch::Contains("did you mean 'adam"));
}

}  // namespace
}  // namespace gxp
