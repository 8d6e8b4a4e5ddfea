// The answers of other calculators, against values that those calculators gave when run.
#include "lib/estimate/compatibility.h"

#include <fmt/format.h>

#include <string>

#include "lib/base/error.h"
#include "lib/estimate/model_states.h"
#include "tests/catch.h"

namespace gxp {
namespace {

Question question_of(int gpus, int stage, int gpus_per_host = 8) {
  Question question;
  question.parameters = 7'000'000'000;
  question.largest_layer = 131'072'000;
  question.gpus = gpus;
  question.gpus_per_host = std::min(gpus, gpus_per_host);
  question.stage = stage;
  return question;
}

std::string gibibytes(uint64_t bytes) { return fmt::format("{:.2f}", double(bytes) / (1 << 30)); }

std::vector<ToolEstimate> ask(const char* tool, const Question& question) {
  return gxp::ask(find_tool(tool), question);
}

// DeepSpeed's rows for one set-up: bytes per CPU and per GPU in GiB.
struct Setup {
  int hosts;
  int gpus_per_host;
  int stage;
  std::vector<std::pair<const char*, const char*>> rows;
};

TEST_CASE("deepspeed: both estimators give their own numbers", "[plan]") {
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
  const auto answers = ask("deepspeed", question_of(setup.hosts * setup.gpus_per_host, setup.stage,
                                                    setup.gpus_per_host));
  REQUIRE(answers.size() == setup.rows.size());
  for (size_t i = 0; i < answers.size(); ++i) {
    CAPTURE(setup.hosts, setup.gpus_per_host, setup.stage, answers[i].options);
    CHECK(gibibytes(*answers[i].host_bytes) == setup.rows[i].first);
    CHECK(gibibytes(answers[i].gpu_bytes) == setup.rows[i].second);
  }
}

TEST_CASE("deepspeed: ZeRO-3 with zero_init on several hosts gives its own numbers", "[plan]") {
  const auto setup =
      GENERATE(Setup{2, 4, 3, {{"88.01", "0.49"}, {"78.23", "2.12"}, {"2.93", "15.16"}}},
               Setup{8, 8, 3, {{"22.00", "0.49"}, {"19.56", "0.69"}, {"5.86", "2.32"}}});
  const auto answers =
      ask("deepspeed", question_of(setup.hosts * setup.gpus_per_host, 3, setup.gpus_per_host));
  for (size_t i = 0; i < setup.rows.size(); ++i) {
    CAPTURE(setup.hosts, answers[2 * i].options);  // every other row is without zero_init
    CHECK(gibibytes(*answers[2 * i].host_bytes) == setup.rows[i].first);
    CHECK(gibibytes(answers[2 * i].gpu_bytes) == setup.rows[i].second);
  }
}

TEST_CASE("deepspeed: lines are printed as the estimators print them", "[plan]") {
  const auto zero2 = ask("deepspeed", question_of(8, 2));
  CHECK(zero2[0].printed == "  312.92GB |  13.04GB | offload_optimizer=cpu ");
  CHECK(zero2[1].printed == "  312.92GB |  27.71GB | offload_optimizer=none");
  const auto zero3 = ask("deepspeed", question_of(8, 3));
  CHECK(zero3[0].printed ==
        "  176.02GB |   0.49GB | offload_param=cpu , offload_optimizer=cpu , zero_init=1");
  CHECK(zero3[5].printed ==
        "  312.92GB |  15.16GB | offload_param=none, offload_optimizer=none, zero_init=0");
}

TEST_CASE("deepspeed-docs: the documentation's printed examples", "[plan]") {
  Question question = question_of(8, 2);
  question.parameters = 2'851'000'000;
  question.largest_layer = 32'000'000;
  const auto zero2 = ask("deepspeed-docs", question);
  CHECK(zero2[0].printed == "  127.45GB |   5.31GB | cpu_offload=1");
  CHECK(zero2[1].printed == "  127.45GB |  15.93GB | cpu_offload=0");
  question.stage = 3;
  constexpr std::array kPrinted = {
      "   71.69GB |   0.12GB | cpu_offload=1, cpu_offload_params=1, zero_init=1",
      "  127.45GB |   0.12GB | cpu_offload=1, cpu_offload_params=1, zero_init=0",
      "   63.72GB |   0.78GB | cpu_offload=1, cpu_offload_params=0, zero_init=1",
      "  127.45GB |   0.78GB | cpu_offload=1, cpu_offload_params=0, zero_init=0",
      "    1.43GB |   6.09GB | cpu_offload=0, cpu_offload_params=0, zero_init=1",
      "  127.45GB |   6.09GB | cpu_offload=0, cpu_offload_params=0, zero_init=0"};
  const auto zero3 = ask("deepspeed-docs", question);
  for (size_t i = 0; i < kPrinted.size(); ++i) CHECK(zero3[i].printed == kPrinted[i]);
}

TEST_CASE("deepspeed: the code takes less than the documentation prints for T5-3B", "[plan]") {
  Question question = question_of(8, 2);
  question.parameters = 2'851'598'336;
  CHECK(gibibytes(ask("deepspeed", question)[1].gpu_bytes) == "11.29");
  CHECK(gibibytes(ask("deepspeed-docs", question)[1].gpu_bytes) == "15.93");
  CHECK(gibibytes(*ask("deepspeed-docs", question)[1].host_bytes) == "127.48");
}

TEST_CASE("six tools give six answers to the same question", "[plan]") {
  const auto [tool, row, answer] =
      GENERATE(table<const char*, size_t, std::string>({{"paper", 0, "24.45"},
                                                        {"deepspeed", 1, "27.71"},
                                                        {"deepspeed-docs", 1, "39.12"},
                                                        {"megatron", 0, "48.89"},
                                                        {"accelerate", 0, "52.15"}}));
  CAPTURE(tool);
  CHECK(gibibytes(ask(tool, question_of(8, 2))[row].gpu_bytes) == answer);
}

TEST_CASE("autotuner: twenty bytes per parameter, and the estimators' ZeRO-2", "[plan]") {
  const auto [stage, gibibytes] =
      GENERATE(table<int, std::string>({{0, "130.39"}, {2, "27.71"}, {3, "16.30"}}));
  const Question question{
      .parameters = 7'000'000'000, .gpus = 8, .gpus_per_host = 8, .stage = stage};
  const ToolEstimate answer = ask(find_tool("autotuner"), question)[0];
  CHECK(fmt::format("{:.2f}", double(answer.gpu_bytes) / (1 << 30)) == gibibytes);
}

TEST_CASE("eleuther: the states and the bucket of the same question", "[plan]") {
  const ToolEstimate answer = ask("eleuther", question_of(8, 2))[0];
  const uint64_t bucket = answer.terms.back().bytes;
  CHECK(gibibytes(answer.gpu_bytes - bucket) == "26.08");
  CHECK(gibibytes(bucket) == "0.93");
}

TEST_CASE("paper: stages are printed in decimal GB", "[plan]") {
  const auto [stage, printed] = GENERATE(table<int, std::string>(
      {{0, "120.00 GB"}, {1, "31.41 GB"}, {2, "16.64 GB"}, {3, "1.88 GB"}}));
  Question question = question_of(64, stage);
  question.parameters = 7'500'000'000;
  CHECK(ask("paper", question)[0].printed == printed);
}

TEST_CASE("megatron: bytes per parameter are those of its table", "[plan]") {
  const auto [precision, plain, distributed] = GENERATE(table<const char*, double, double>(
      {{"fp16", 20, 4 + 16 / 8.0}, {"bf16", 18, 6 + 12 / 8.0}, {"fp32", 16, 8 + 8 / 8.0}}));
  Question question = question_of(8, 0);
  question.precision = precision;
  CHECK(double(ask("megatron", question)[0].gpu_bytes) == 7e9 * plain);
  question.stage = 1;
  CHECK(double(ask("megatron", question)[0].gpu_bytes) == 7e9 * distributed);
}

TEST_CASE("megatron: its line is in MiB under the name MB", "[plan]") {
  CHECK(ask("megatron", question_of(8, 2))[0].printed ==
        "Theoretical memory footprints: weight and optimizer=50067.90 MB");
}

TEST_CASE("accelerate: the largest row under decimal names", "[plan]") {
  const auto [precision, parameters, printed] =
      GENERATE(table<const char*, uint64_t, std::string>({{"fp16", 7'000'000'000, "52.15 GB"},
                                                          {"bf16", 7'000'000'000, "52.15 GB"},
                                                          {"fp32", 7'000'000'000, "104.31 GB"},
                                                          {"fp32", 1 << 20, "16.0 MB"},
                                                          {"fp16", 100, "800 bytes"}}));
  Question question = question_of(8, 2);
  question.precision = precision;
  question.parameters = parameters;
  CHECK(ask("accelerate", question)[0].printed == printed);
}

// The shapes of the calculator's own examples; it takes 51200 rows of embedding where none are
// given, and a Llama's three matrices of 11008 as two of 16512.
PublishedModel shape(uint64_t layers, uint64_t hidden, uint64_t heads, uint64_t vocabulary,
                     uint64_t positions, uint64_t mlp) {
  PublishedModel model;
  model.kind = BlockKind::kLlama;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.vocabulary = vocabulary;
  model.positions = positions;
  model.mlp = mlp;
  return model;
}

std::string component(const ToolEstimate& answer, const std::string& name) {
  for (const Term& term : answer.terms) {
    if (term.component == name) return gibibytes(term.bytes);
  }
  return "absent";
}

TEST_CASE("eleuther: its example with Pythia 6.9B", "[plan]") {
  const PublishedModel pythia = shape(32, 4096, 32, 51200, 2048, 16384);
  Question question = question_of(128, 1);
  question.model = &pythia;
  question.micro_batch = 8;
  question.tensor_parallel = 2;
  question.checkpoint_activations = question.partition_activations = true;
  const ToolEstimate answer = ask("eleuther", question)[0];
  CHECK(component(answer, "activations") == "34.00");
  CHECK(component(answer, "model") == "6.40");
  CHECK(component(answer, "gradients") == "25.60");
  CHECK(component(answer, "optimizer") == "0.60");
  CHECK(component(answer, "communication") == "0.93");
  CHECK(answer.printed == "Per-GPU Memory Required for Training: 67.53 GiB");
}

TEST_CASE("eleuther: its default of 20 billion parameters on one GPU", "[plan]") {
  const PublishedModel neox = shape(44, 6144, 64, 51200, 2048, 4 * 6144);
  Question question = question_of(1, 1);
  question.model = &neox;
  question.checkpoint_activations = true;
  const ToolEstimate answer = ask("eleuther", question)[0];
  CHECK(component(answer, "activations") == "17.53");
  CHECK(gibibytes(answer.gpu_bytes) == "362.45");
}

TEST_CASE("eleuther: its example with Llama 7B, on one GPU and on eight", "[plan]") {
  const PublishedModel example = shape(32, 4096, 32, 51200, 4096, 14336);
  Question question = question_of(1, 1);
  question.model = &example;
  CHECK(component(ask("eleuther", question)[0], "activations") == "97.00");
  CHECK(gibibytes(ask("eleuther", question)[0].gpu_bytes) == "203.33");

  const PublishedModel llama = shape(32, 4096, 32, 32000, 4096, 16512);
  question = question_of(8, 3);
  question.model = &llama;
  question.checkpoint_activations = true;
  CHECK(gibibytes(ask("eleuther", question)[0].gpu_bytes) == "33.95");
}

TEST_CASE("a tool that has no answer says why and what to ask instead", "[plan]") {
  Question question = question_of(8, 1);
  CHECK_THROWS_WITH(ask("deepspeed", question),
                    "compare with deepspeed: it has no answer for stage 1; use --stage 2,3");
  question.stage = 3;
  question.largest_layer = 0;
  CHECK_THROWS_WITH(ask("deepspeed", question), Catch::Contains("give --largest-layer"));
  CHECK_THROWS_WITH(ask("megatron", question), Catch::Contains("no answer for stage 3"));
  question.parameters = kMostParameters;
  question.gpus = question.gpus_per_host = kMostGpus;
  question.stage = 2;
  CHECK_THROWS_WITH(ask("deepspeed", question), Catch::Contains("ask for fewer GPUs"));
  question.precision = "pure-bf16";
  CHECK_THROWS_WITH(ask("accelerate", question), Catch::Contains("does not know precision pure-b"));
  CHECK_THROWS_WITH(find_tool("deepsped"), Catch::Contains("did you mean 'deepspeed'"));
}

TEST_CASE("every tool explains each of its answers for every stage it knows", "[plan]") {
  for (const Tool& tool : compatible_tools()) {
    for (const int stage : tool.stages) {
      for (const ToolEstimate& answer : gxp::ask(tool, question_of(8, stage))) {
        CAPTURE(tool.name, stage, answer.options);
        CHECK_FALSE(answer.printed.empty());
        CHECK_FALSE(answer.terms.empty());
        for (const Term& term : answer.terms) CHECK_FALSE(term.source.empty());
      }
    }
  }
}

TEST_CASE("every precision that a tool knows is one of gxp's", "[plan]") {
  for (const Tool& tool : compatible_tools()) {
    for (const std::string_view precision : tool.precisions) {
      CHECK_NOTHROW(find_precision(precision));
    }
  }
}

}  // namespace
}  // namespace gxp
