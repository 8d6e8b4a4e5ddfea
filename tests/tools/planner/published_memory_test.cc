// Parameters and memory against published tables.
#include <cmath>

#include "lib/tools/planner/predict_memory.h"
#include "tests/tools/planner/csv.h"

namespace gxp {
namespace {

TEST_CASE("an MPT's parameter count is that of each row of llm-foundry's table", "[estimate]") {
  for (const CsvRow& row : read_published("mpt-llm-foundry.csv")) {
    PublishedModel model = find_published_model("mpt-" + row.at("model"));
    model.positions = std::stoull(row.at("seq_len"));
    CAPTURE(row.at("model"), row.at("seq_len"));
    CHECK(parameter_count(model) == std::stoull(row.at("params")));
    CHECK(model.hidden == std::stoull(row.at("d_model")));
    CHECK(model.layers == std::stoull(row.at("n_layers")));
  }
}

TEST_CASE("Megatron's sizes are those of its papers", "[estimate]") {
  const auto [name, billions] = GENERATE(table<std::string, double>(
      {{"megatron-22b", 22.0}, {"megatron-530b", 529.6}, {"megatron-1t", 1008.0}}));
  CHECK(double(parameter_count(find_published_model(name))) / 1e9 ==
        Approx(billions).epsilon(0.004));
}

// Korthikanti et al., table 3: micro-batch and pieces of the model on each GPU.
TrainCase case_of_row(const CsvRow& row) {
  const std::string& name = row.at("model");
  const bool is_22b = name == "22B";
  TrainPlan plan{.sequence = 2048,
                 .micro_batch = uint64_t(is_22b ? 4 : 1),
                 .accumulation = 0,
                 .tensor = std::stoi(row.at("tp")),
                 .pipeline = std::stoi(row.at("pp")),
                 .interleave = is_22b ? 1 : 3,
                 .sequence_parallel = contains(row.at("recompute"), "SP"),
                 .stage = 0};
  plan.gpus = plan.tensor * plan.pipeline;
  if (contains(row.at("recompute"), "selective")) plan.recompute = Recompute::kSelective;
  return {.model = &find_published_model(is_22b ? "megatron-22b" : "megatron-530b"),
          .software = &find_software("megatron-2021"),
          .plan = plan,
          .precision = &find_precision("bf16-fp32-grads")};
}

TEST_CASE("activations and states are those of Korthikanti's figure 1", "[estimate]") {
  constexpr double kGiB = 1 << 30;
  for (const CsvRow& row : read_published("memory-korthikanti.csv")) {
    CAPTURE(row.at("model"), row.at("recompute"));
    REQUIRE((row.at("model") == "22B" || row.at("model") == "530B"));
    const PlanMemory memory = predict_memory(case_of_row(row));
    CHECK(double(memory.activations) / kGiB ==
          Approx(std::stod(row.at("activation_gib"))).epsilon(0.0001));
    CHECK(double(memory.states.total()) / kGiB ==
          Approx(std::stod(row.at("params_grads_opt_gib"))).epsilon(0.016));
  }
}

}  // namespace
}  // namespace gxp
