// The answers of other calculators, against values that those calculators gave when run.
#include "lib/tools/planner/compatibility.h"

#include <fmt/format.h>

#include <string>

#include "lib/base/error.h"
#include "lib/tools/planner/model_states.h"
#include "tests/catch.h"

namespace gxp {
namespace {

CalculatorInput input_of(int gpus, int stage, int gpus_per_host = 8) {
  CalculatorInput question;
  question.parameters = 7'000'000'000;
  question.largest_layer = 131'072'000;
  question.gpus = gpus;
  question.gpus_per_host = std::min(gpus, gpus_per_host);
  question.stage = stage;
  return question;
}

std::string gibibytes(uint64_t bytes) { return fmt::format("{:.2f}", double(bytes) / (1 << 30)); }

std::vector<CalculatorAnswer> ask(const char* tool, const CalculatorInput& question) {
  return gxp::ask(find_calculator(tool), question);
}

// DeepSpeed's rows for one set-up: bytes per CPU and per GPU in GiB.
struct Setup {
  int hosts;
  int gpus_per_host;
  int stage;
  std::vector<std::pair<const char*, const char*>> rows;
};

TEST_CASE("deepspeed: both estimators give their own numbers", "[estimate]") {
  const auto setup = GENERATE(Setup{1, 1, 2, {{"156.46", "13.04"}, {"39.12", "130.39"}}},
                              Setup{1, 8, 2, {{"312.92", "13.04"}, {"312.92", "27.71"}}},
                              Setup{8, 8, 2, {{"2503.40", "13.04"}, {"312.92", "14.87"}}},
                              Setup{1,
                                    8,
                                    3,
                                    {{"176.02", "0.49"},
                                     {"312.92", "0.49"},
                                     {"156.46", "2.12"},
                                     {"312.92", "2.12"},
                                     {"5.86", "15.16"},
                                     {"312.92", "15.16"}}});
  const auto answers = ask(
      "deepspeed", input_of(setup.hosts * setup.gpus_per_host, setup.stage, setup.gpus_per_host));
  REQUIRE(answers.size() == setup.rows.size());
  for (size_t i = 0; i < answers.size(); ++i) {
    CAPTURE(setup.hosts, setup.gpus_per_host, setup.stage, answers[i].options);
    CHECK(gibibytes(*answers[i].host_bytes) == setup.rows[i].first);
    CHECK(gibibytes(answers[i].gpu_bytes) == setup.rows[i].second);
  }
}

TEST_CASE("deepspeed: ZeRO-3 with zero_init on several hosts gives its own numbers", "[estimate]") {
  const auto setup =
      GENERATE(Setup{2, 4, 3, {{"88.01", "0.49"}, {"78.23", "2.12"}, {"2.93", "15.16"}}},
               Setup{8, 8, 3, {{"22.00", "0.49"}, {"19.56", "0.69"}, {"5.86", "2.32"}}});
  const auto answers =
      ask("deepspeed", input_of(setup.hosts * setup.gpus_per_host, 3, setup.gpus_per_host));
  for (size_t i = 0; i < setup.rows.size(); ++i) {
    CAPTURE(setup.hosts, answers[2 * i].options);  // every other row is without zero_init
    CHECK(gibibytes(*answers[2 * i].host_bytes) == setup.rows[i].first);
    CHECK(gibibytes(answers[2 * i].gpu_bytes) == setup.rows[i].second);
  }
}

TEST_CASE("deepspeed: lines are printed as the estimators print them", "[estimate]") {
  const auto zero2 = ask("deepspeed", input_of(8, 2));
  CHECK(zero2[0].printed == "  312.92GB |  13.04GB | offload_optimizer=cpu ");
  CHECK(zero2[1].printed == "  312.92GB |  27.71GB | offload_optimizer=none");
  const auto zero3 = ask("deepspeed", input_of(8, 3));
  CHECK(zero3[0].printed ==
        "  176.02GB |   0.49GB | offload_param=cpu , offload_optimizer=cpu , zero_init=1");
  CHECK(zero3[5].printed ==
        "  312.92GB |  15.16GB | offload_param=none, offload_optimizer=none, zero_init=0");
}

TEST_CASE("paper: stages are printed in decimal GB", "[estimate]") {
  const auto [stage, printed] = GENERATE(table<int, std::string>(
      {{0, "120.00 GB"}, {1, "31.41 GB"}, {2, "16.64 GB"}, {3, "1.88 GB"}}));
  CalculatorInput question = input_of(64, stage);
  question.parameters = 7'500'000'000;
  CHECK(ask("paper", question)[0].printed == printed);
}

TEST_CASE("a tool that has no answer says why and what to ask instead", "[estimate]") {
  CalculatorInput question = input_of(8, 1);
  CHECK_THROWS_WITH(ask("deepspeed", question),
                    "compare with deepspeed: it has no answer for stage 1; use --stage 2,3");
  question.stage = 3;
  question.largest_layer = 0;
  CHECK_THROWS_WITH(ask("deepspeed", question), Catch::Contains("add --largest-layer"));
  question.parameters = kMostParameters;
  question.gpus = question.gpus_per_host = kMostGpus;
  question.stage = 2;
  CHECK_THROWS_WITH(ask("deepspeed", question), Catch::Contains("use fewer GPUs"));
  question.parameters = 1;
  question.precision = &find_precision("pure-bf16");
  CHECK_THROWS_WITH(ask("paper", question), Catch::Contains("does not know precision pure-b"));
  CHECK_THROWS_WITH(find_calculator("deepsped"), Catch::Contains("did you mean 'deepspeed'"));
}

TEST_CASE("every tool explains each of its answers for every stage it knows", "[estimate]") {
  for (const Calculator& tool : calculators()) {
    for (const int stage : tool.stages) {
      for (const CalculatorAnswer& answer : gxp::ask(tool, input_of(8, stage))) {
        CAPTURE(tool.name, stage, answer.options);
        CHECK_FALSE(answer.printed.empty());
        CHECK_FALSE(answer.terms.empty());
        for (const Term& term : answer.terms) CHECK_FALSE(term.source.empty());
      }
    }
  }
}

}  // namespace
}  // namespace gxp
