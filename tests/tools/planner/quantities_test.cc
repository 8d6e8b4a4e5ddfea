// The inverse questions of a prediction: the answer fits, and one step further does not.
#include "lib/tools/planner/quantities.h"

#include "lib/tools/planner/predict_memory.h"
#include "tests/catch.h"

namespace gxp {
namespace {

TrainCase states_of(uint64_t parameters, int stage) {
  return {.plan = {.sequence = 0, .stage = stage}, .parameters = parameters};
}

TrainCase ask(const char* name, int stage, uint64_t sequence) {
  return {.model = &find_published_model(name),
          .software = &find_software("fsdp"),
          .plan = {.sequence = sequence, .stage = stage, .recompute = Recompute::kSelective}};
}

TEST_CASE("the fewest GPUs that fit are so: one copy's fewer do not", "[estimate]") {
  const int stage = GENERATE(2, 3);
  const int tensor = GENERATE(1, 4);
  const uint64_t limit = GENERATE(50'000'000'000u, 80'000'000'000u);
  TrainCase question = ask("llama3-8b", stage, 2048);
  question.plan.tensor = tensor;
  const auto bytes_on = [&](int gpus) {
    question.plan.gpus = gpus;
    return predict_memory(question).total();
  };
  const std::optional<int> gpus = least_gpus(question, limit);
  REQUIRE(gpus);
  CAPTURE(stage, tensor, limit, *gpus);
  CHECK(*gpus % tensor == 0);
  CHECK(bytes_on(*gpus) <= limit);
  if (*gpus > tensor) CHECK(bytes_on(*gpus - tensor) > limit);
}

TEST_CASE("no number of GPUs makes room for what is not sharded", "[estimate]") {
  CHECK_FALSE(least_gpus(states_of(7'000'000'000, 0), 111'999'999'999));
  CHECK(least_gpus(states_of(7'000'000'000, 0), 112'000'000'000) == 1);
  CHECK_FALSE(least_gpus(states_of(7'000'000'000, 2), 14'000'000'000));
  CHECK_FALSE(least_gpus(states_of(1, 3), 15));
}

TEST_CASE("a model has more of each quantity until the memory is full", "[estimate]") {
  const char* name = GENERATE("gpt2-xl", "llama3-8b");  // with a table of positions, and without
  const TrainCase question = ask(name, 3, 4096);
  const ModelPlan subject{*question.model, question.plan};
  for (const Quantity<ModelPlan>& quantity : model_quantities()) {
    CAPTURE(name, quantity.name);
    const auto bytes_of = [&](int value) {
      ModelPlan more = subject;
      quantity.set(more, value);
      TrainCase larger = question;
      larger.model = &more.model;
      larger.plan = more.plan;
      return predict_memory(larger).total();
    };
    const uint64_t limit = 80'000'000'000;
    const Largest largest = find_largest(bytes_of, limit, quantity.least(subject), quantity.most);
    CHECK(largest.value > 1);
    CHECK(bytes_of(largest.value) <= limit);
    CHECK(bytes_of(largest.value + 1) > limit);
  }
}

}  // namespace
}  // namespace gxp
