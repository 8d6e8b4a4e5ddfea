// The inverse questions of an estimate: the answer fits, and one step further does not.
#include "lib/estimate/estimate.h"

#include "lib/estimate/find_largest.h"
#include "tests/catch.h"

namespace gxp {
namespace {

EstimateQuestion states_of(uint64_t parameters, int stage) {
  return {.training = {parameters, find_precision("bf16"), find_optimizer_state("adamw")},
          .placement = {.stage = stage}};
}

EstimateQuestion ask(const char* name, int stage, int gpus, uint64_t sequence) {
  const PublishedModel& model = find_published_model(name);
  EstimateQuestion question = states_of(parameter_count(model), stage);
  question.model = model;
  question.placement.gpus = gpus;
  question.sequence = sequence;
  question.recompute = Recompute::kSelective;
  return question;
}

uint64_t bytes_on(EstimateQuestion question, int gpus) {
  question.placement.gpus = gpus;
  return estimate(question).total();
}

TEST_CASE("the fewest GPUs that fit are so: one copy's fewer do not", "[plan]") {
  const int stage = GENERATE(2, 3);
  const int tensor = GENERATE(1, 4);
  const uint64_t limit = GENERATE(50'000'000'000u, 80'000'000'000u);
  EstimateQuestion question = ask("llama3-8b", stage, 1, 2048);
  question.tensor = tensor;
  question.runtime = &find_runtime("fsdp2");
  const std::optional<int> gpus = least_gpus(question, limit);
  REQUIRE(gpus);
  CAPTURE(stage, tensor, limit, *gpus);
  CHECK(*gpus % tensor == 0);
  CHECK(bytes_on(question, *gpus) <= limit);
  if (*gpus > tensor) CHECK(bytes_on(question, *gpus - tensor) > limit);
}

TEST_CASE("no number of GPUs makes room for what is not sharded", "[plan]") {
  CHECK_FALSE(least_gpus(states_of(7'000'000'000, 0), 111'999'999'999));
  CHECK(least_gpus(states_of(7'000'000'000, 0), 112'000'000'000) == 1);
  CHECK_FALSE(least_gpus(states_of(7'000'000'000, 2), 14'000'000'000));
  CHECK_FALSE(least_gpus(states_of(1, 3), 15));
}

TEST_CASE("a model has more of each quantity until the memory is full", "[plan]") {
  const char* name = GENERATE("gpt2-xl", "llama3-8b");  // with a table of positions, and without
  const EstimateQuestion question = ask(name, 3, 8, 4096);
  for (const EstimateQuantity& quantity : estimate_quantities()) {
    CAPTURE(name, quantity.name);
    const auto bytes_of = [&](int value) {
      EstimateQuestion more = question;
      quantity.set(more, value);
      return estimate(more).total();
    };
    const uint64_t limit = 80'000'000'000;
    const Largest largest = find_largest(bytes_of, limit, quantity.least(question), quantity.most);
    CHECK(largest.value > 1);
    CHECK(bytes_of(largest.value) <= limit);
    CHECK(bytes_of(largest.value + 1) > limit);
  }
}

TEST_CASE("changes that fit do so, the cheapest first, each needed", "[plan]") {
  const auto ways = [](const EstimateQuestion& question) {
    std::vector<std::string> all;
    for (const EstimateChange& change : changes_that_fit(question, 80'000'000'000)) {
      CHECK(change.bytes <= 80'000'000'000);
      all.push_back(change.what);
    }
    return all;
  };
  using Ways = std::vector<std::string>;
  EstimateQuestion question = ask("llama3-70b", 3, 64, 8192);
  question.micro_batch = 2;  // 17.6 GB of states, 360 of activations
  CHECK(ways(question) == Ways{"--recompute full", "--tensor-parallel 8 --sequence-parallel"});
  question.recompute = Recompute::kFull;
  question.placement.gpus = 8;  // 141 GB of states, 46 of activations
  question.placement.shard = 4;
  CHECK(ways(question) == Ways{});
  question.placement.shard = 0;
  CHECK(ways(question) == Ways{"--gpus 64"});
  question.placement.stage = 1;  // parameters and gradients alone are 282 GB
  CHECK(ways(question).size() > 0);
  question.placement.gpus = 1;
  CHECK(ways(question).size() > 0);
}

TEST_CASE("nothing makes room for what no change touches", "[plan]") {
  CHECK(changes_that_fit(states_of(7'000'000'000, 0), 10'000'000'000).empty());
}

}  // namespace
}  // namespace gxp
