#include "lib/train/graph_choice.h"

#include "tests/train/golden.h"

namespace gxp {
namespace {

// A block of 12 C^2 + 13 C parameters, of C = 768, in rows of 1024 positions.
RunConfig gpt2_124m(int rows, const std::string& choice) {
  RunConfig config = golden_config(
      "gpt2-tiny", 1,
      {"model.layers=12", "model.hidden=768", "model.heads=12", "model.context=1024"});
  config.train.micro_batch = rows;
  config.train.cuda_graphs = choice;
  return config;
}

bool records(const RunConfig& config, double flops_per_s) {
  return choose_graphs(config, make_architecture(config.model), 1024, flops_per_s).records;
}

}  // namespace

TEST_CASE("graphs are recorded where a block's forward pass takes less than a millisecond") {
  const double flops_of_a_row = 2.0 * (12 * 768 * 768 + 13 * 768 + 768 * 1024) * 1024;
  const double just_fast_enough = 16 * flops_of_a_row / 1e-3 * 1.001;
  CHECK(records(gpt2_124m(16, "auto"), just_fast_enough));
  CHECK_FALSE(records(gpt2_124m(17, "auto"), just_fast_enough));
  CHECK(records(gpt2_124m(1 << 10, "on"), just_fast_enough));
  CHECK_FALSE(records(gpt2_124m(1, "off"), just_fast_enough));
}

TEST_CASE("graphs that are asked for on a CPU are an error") {
  const RunConfig config = golden_config("gpt2-tiny", 1, {"train.cuda_graphs=on"});
  CHECK_THROWS_WITH(make_backend(config.train, 1),
                    "train.cuda_graphs on: device cpu has no CUDA graphs; use auto or off");
}

TEST_CASE("steps that are to be profiled on a CPU are an error") {
  const RunConfig config =
      golden_config("gpt2-tiny", 1, {"train.profile_steps=1-2", "train.device=cpu"});
  CHECK_THROWS_WITH(
      make_backend(config.train, 1),
      "train.profile_steps 1-2: CUDA's profilers do not see device cpu; leave it out");
}

TEST_CASE("tensor cores that are asked for on a CPU are an error") {
  const RunConfig config = golden_config("gpt2-tiny", 1, {"train.matmul=tf32"});
  CHECK_THROWS_WITH(make_backend(config.train, 1),
                    "train.matmul tf32: device cpu has no tensor cores; use precision");
}

}  // namespace gxp
