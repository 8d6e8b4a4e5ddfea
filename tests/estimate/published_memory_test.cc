// Parameters and memory against published tables.
#include <cmath>

#include "lib/estimate/activations.h"
#include "lib/estimate/model_states.h"
#include "tests/estimate/csv.h"

namespace gxp {
namespace {

TEST_CASE("an MPT's parameter count is that of each row of llm-foundry's table", "[plan]") {
  for (const CsvRow& row : read_published("mpt-llm-foundry.csv")) {
    PublishedModel model = find_published_model("mpt-" + row.at("model"));
    model.positions = std::stoull(row.at("seq_len"));
    CAPTURE(row.at("model"), row.at("seq_len"));
    CHECK(parameter_count(model) == std::stoull(row.at("params")));
    CHECK(model.hidden == std::stoull(row.at("d_model")));
    CHECK(model.layers == std::stoull(row.at("n_layers")));
  }
}

TEST_CASE("Megatron's sizes are those of its papers", "[plan]") {
  const auto [name, billions] = GENERATE(table<std::string, double>(
      {{"megatron-22b", 22.0}, {"megatron-530b", 529.6}, {"megatron-1t", 1008.0}}));
  CHECK(double(parameter_count(find_published_model(name))) / 1e9 ==
        Approx(billions).epsilon(0.004));
}

// Korthikanti et al., table 3: micro-batch and pieces of the model on each GPU.
ActivationShape shape_of(const CsvRow& row) {
  const std::string& name = row.at("model");
  const auto& model = find_published_model(name == "22B"    ? "megatron-22b"
                                           : name == "175B" ? "gpt3-175b"
                                           : name == "530B" ? "megatron-530b"
                                                            : "megatron-1t");
  ActivationShape shape = activation_shape(model, 2048, name == "22B" ? 4 : 1);
  shape.tensor_parallel = std::stoull(row.at("tp"));
  shape.pipeline_parallel = std::stoull(row.at("pp"));
  shape.interleave = name == "175B" || name == "530B" ? 3 : 1;
  shape.sequence_parallel = contains(row.at("recompute"), "SP");
  return shape;
}

TEST_CASE("activations and states are those of Korthikanti's figure 1", "[plan]") {
  constexpr double kGiB = 1 << 30;
  for (const CsvRow& row : read_published("memory-korthikanti.csv")) {
    const ActivationShape shape = shape_of(row);
    const bool selective = contains(row.at("recompute"), "selective");
    const uint64_t kept =
        kept_activations(shape, selective ? Recompute::kSelective : Recompute::kNone);
    const auto& model = find_published_model(shape.layers == 48 ? "megatron-22b" : "megatron-530b");
    const Training training{parameter_count(model), find_precision("bf16-fp32-grads"),
                            find_optimizer_state("adam")};
    const double states = double(model_states(training, {}).total()) /
                          double(shape.tensor_parallel * shape.pipeline_parallel);
    CAPTURE(row.at("model"), row.at("recompute"));
    CHECK(double(kept) / kGiB == Approx(std::stod(row.at("activation_gib"))).epsilon(0.0001));
    CHECK(states / kGiB == Approx(std::stod(row.at("params_grads_opt_gib"))).epsilon(0.016));
  }
}

}  // namespace
}  // namespace gxp
