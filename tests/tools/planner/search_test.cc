#include "lib/tools/planner/search.h"

#include <set>

#include "lib/base/error.h"
#include "lib/tools/planner/cluster_links.h"
#include "lib/tools/planner/predict_memory.h"
#include "lib/tools/topology/read/cluster_file.h"
#include "tests/catch.h"

namespace gxp {
namespace {

constexpr uint64_t kGiB = 1 << 30;

TrainCase case_of(const char* model, TrainPlan plan, const char* hardware = "dgx-h100") {
  return {&find_published_model(model), &find_hardware(hardware), &find_software("fsdp"), plan};
}

TEST_CASE("the best plans are each faster than all smaller ones, and none is missed",
          "[estimate]") {
  const TrainCase base = case_of("llama3-8b", {.sequence = 8192, .gpus = 16});
  PlanGrid grid{.global_batch = 32,
                .stages = {0, 2, 3},
                .tensors = {1, 2},
                .pipelines = {1},
                .interleaves = {1},
                .recomputes = {Recompute::kNone, Recompute::kFull},
                .offloads = {StateOffload::kNone}};
  const SearchResult result = search_plans(base, grid, 80 * kGiB);
  REQUIRE(result.pareto.size() > 2);
  CHECK(result.fitting < result.tried);
  for (size_t i = 0; i < result.pareto.size(); ++i) {
    const auto& candidate = result.pareto[i];
    TrainCase question = base;
    question.plan = candidate.plan;
    CHECK(cost_of(question).seconds == candidate.cost.seconds);
    CHECK(candidate.cost.bytes <= 80 * kGiB);
    CHECK(candidate.plan.tokens_per_step() == uint64_t{32} * 8192);
    if (i == 0) continue;
    CHECK(candidate.cost.bytes > result.pareto[i - 1].cost.bytes);
    CHECK(candidate.cost.seconds < result.pareto[i - 1].cost.seconds);
  }
  // A smaller space can only be worse.
  grid.stages = {3};
  const SearchResult less = search_plans(base, grid, 80 * kGiB);
  CHECK(less.tried < result.tried);
  CHECK(less.pareto.back().cost.seconds >= result.pareto.back().cost.seconds);
}

TEST_CASE("a hundred thousand plans are searched", "[estimate]") {
  const TrainCase base = case_of("llama3-70b", {.sequence = 8192, .gpus = 3072});
  PlanGrid grid = full_grid(base, 3072 * 4);
  grid.interleaves = {1, 2, 3, 4, 5};
  const SearchResult result = search_plans(base, grid, 80 * kGiB);
  CHECK(result.tried >= 100'000);
  CHECK(result.fitting > 0);
}

TEST_CASE("changes make a plan fit, the fastest first, with the same step", "[estimate]") {
  const TrainCase question =
      case_of("llama3-8b", {.sequence = 8192, .micro_batch = 4, .gpus = 8, .stage = 1});
  const uint64_t limit = 70 * kGiB;
  REQUIRE(cost_of(question).bytes > limit);
  const auto ways = plans_that_fit(question, limit);
  REQUIRE(ways.size() == 3);
  for (const auto& way : ways) {
    CHECK(way.cost.bytes <= limit);
    CHECK(way.plan.tokens_per_step() == question.plan.tokens_per_step());
  }
  CHECK(ways[0].cost.seconds <= ways[1].cost.seconds);
  CHECK(ways[1].cost.seconds <= ways[2].cost.seconds);
}

TEST_CASE("several changes at once are each of another setting", "[estimate]") {
  const TrainCase question =
      case_of("llama3-70b", {.sequence = 8192, .micro_batch = 4, .gpus = 64, .stage = 0});
  const auto ways = plans_that_fit(question, 40 * kGiB);
  CHECK(!ways.empty());
  for (const auto& way : ways) {
    std::set<std::string_view> settings;
    for (const ChangedSetting& change : way.changes) settings.insert(change.name);
    CHECK(settings.size() == way.changes.size());
    CHECK(way.cost.bytes <= 40 * kGiB);
  }
  CHECK(plans_that_fit(question, kGiB).empty());
}

TEST_CASE("a change is told by its setting and value, and is needed", "[estimate]") {
  const auto told = [](const TrainCase& question) {
    std::vector<std::string> all;
    for (const auto& way : plans_that_fit(question, 80'000'000'000)) {
      std::string text;
      for (const ChangedSetting& change : way.changes)
        text += std::string(change.name) + " " + change.value + ";";
      all.push_back(text);
    }
    return all;
  };
  using Lines = std::vector<std::string>;
  TrainCase question = case_of("llama3-70b", {.sequence = 8192, .micro_batch = 2, .gpus = 64});
  question.hardware = nullptr;  // no time: the cheapest first
  question.plan.accumulation = 0;
  CHECK(told(question) == Lines{"tensor-parallel 8;", "recompute full;micro-batch 1;",
                                "recompute full;offload optimizer;"});
  question.plan.sequence = 0;
  question.plan.stage = 0;
  CHECK(told(question)[0] == "stage 3;");
}

TEST_CASE("nothing makes room for what no change touches", "[estimate]") {
  CHECK(plans_that_fit(
            {.plan = {.sequence = 0, .gpus = 1, .stage = 0}, .parameters = 7'000'000'000}, 1000)
            .empty());
}

TEST_CASE("the Pareto front has what none beats, and of equals the first", "[estimate]") {
  std::vector<CostedPlan<int>> plans;
  int i = 0;
  for (const PlanCost& cost :
       std::vector<PlanCost>{{30, 1}, {20, 3}, {10, 9}, {20, 2}, {15, 9}, {40, 0.5}, {10, 9}})
    plans.push_back({i++, cost});
  std::vector<int> front;
  for (const auto& plan : pareto_of(plans)) front.push_back(plan.plan);
  CHECK(front == std::vector<int>{2, 3, 0, 5});
}

TEST_CASE("a plan that does not divide is refused with its reason", "[estimate]") {
  const auto [plan, words] = GENERATE(table<TrainPlan, std::string>(
      {{{.gpus = 12, .tensor = 8}, "takes 8 GPUs, which does not divide 12"},
       {{.gpus = 8, .shard = 3}, "3 does not divide 8"},
       {{.gpus = 8, .shard = 16}, "16 does not divide 8"},
       {{.gpus = 8, .stage = 4}, "ZeRO has stages 0"},
       {{.gpus = 8, .stage = -1}, "stage -1"},
       {{.gpus = 0}, "plan 0 GPUs: a job has from 1"},
       {{.gpus = kMostGpus + 1}, "GPUs: a job has from 1"},
       {{.gpus = 96, .tensor = 3}, "32 attention heads"},
       {{.gpus = 16, .tensor = 16}, "exceeds the 8"},
       {{.sequence = 2049, .gpus = 2, .context = 2}, "2049 cannot be cut over 2"},
       {{.gpus = 64, .pipeline = 64}, "more than 32 layers"},
       {{.sequence = 1 << 20, .micro_batch = 1 << 16}, "exceed 1e18 bytes"},
       {{.accumulation = uint64_t{1} << 50}, "more than 1e15 tokens"},
       {{.gpus = 8, .interleave = 2}, "--interleave needs several pipeline stages"},
       {{.gpus = 8, .stage = 0, .offload = StateOffload::kOptimizer}, "use stage 1 to 3"},
       {{.gpus = 8, .stage = 2, .offload = StateOffload::kAll}, "use stage 3"}}));
  CHECK_THROWS_WITH(check(case_of("llama3-8b", plan)), Catch::Contains(words));
  CHECK_THROWS_WITH(check(case_of("llama3-8b", {.format = NumberFormat::kFp8}, "dgx-a100")),
                    Catch::Contains("has no fp8"));
  CHECK_THROWS_WITH(check(case_of("llama3-8b", {.format = NumberFormat::kMxfp8}, "dgx-h200")),
                    Catch::Contains("has no mxfp8"));
}

TEST_CASE("the part that has most is told", "[estimate]") {
  CHECK(binding_part(predict_memory(case_of("llama3-70b", {.gpus = 8, .stage = 0}))) ==
        "optimizer");
  CHECK(binding_part(predict_memory(case_of("llama3-8b", {.sequence = 8192, .micro_batch = 8}))) ==
        "activations");
}

TEST_CASE("a cluster file's links are a machine's", "[estimate]") {
  const Links links =
      links_of(Cluster(load_cluster(std::string(GXP_SOURCE_DIR) + "/examples/cluster.toml")));
  CHECK(links.gpus_per_domain == 8);
  CHECK(links.nvlink_bytes_per_s == Approx(370.8e9));
  CHECK(links.network_bytes_per_s > 1e9);
  CHECK(links.network_bytes_per_s <= 50e9);
}

}  // namespace
}  // namespace gxp
