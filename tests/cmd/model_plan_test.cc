// gxp shard-plan MODEL as it is run.
#include <nlohmann/json.hpp>

#include "cmd/memcalc/options.h"
#include "lib/tools/planner/predict_memory.h"
#include "lib/tools/planner/search.h"
#include "tests/catch.h"
#include "tests/cmd/run_gxp.h"
#include "tests/cmd/run_memcalc.h"

namespace gxp {
namespace {

Outcome plan(Arguments arguments) {
  arguments.insert(arguments.begin(), "shard-plan");
  return run_gxp(arguments);
}

Json plan_json(Arguments arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  const Outcome outcome = plan(arguments);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return Json::parse(outcome.out);
}

TEST_CASE("shard-plan of a model tells its step's time and memory, part by part", "[cmd]") {
  const Json report =
      plan_json({"mpt-13b", "--cluster", "dgx-a100", "--software", "llm-foundry", "--sequence",
                 "1024", "--micro-batch", "40", "--accumulate", "3", "--recompute", "full"});
  CHECK(report["schema"] == "gxp.model-plan/1");
  CHECK(report["tokens_per_s_gpu"].get<double>() == Approx(2330).epsilon(0.1));  // published
  CHECK(report["fits"] == true);
  double seconds = 0;
  for (const Json& part : report["parts"]) seconds += part["seconds"].get<double>();
  CHECK(seconds == Approx(report["step_seconds"].get<double>()));
  uint64_t bytes = 0;
  for (const Json& part : report["memory"]) bytes += part["bytes"].get<uint64_t>();
  CHECK(bytes == report["peak_bytes"]);
  CHECK_FALSE(report.contains("changes"));
}

TEST_CASE("shard-plan and memcalc tell the same memory of a plan, part by part", "[cmd]") {
  const Arguments options =
      GENERATE(Arguments{"llama3-8b", "--gpus", "64", "--stage", "3", "--software", "fsdp"},
               Arguments{"llama3-70b", "--gpus", "64", "--stage", "2", "--tensor-parallel", "4",
                         "--micro-batch", "2", "--recompute", "full"},
               Arguments{"gpt3-175b", "--gpus", "128", "--stage", "1", "--tensor-parallel", "8",
                         "--pipeline-parallel", "4", "--interleave", "2", "--accumulate", "8",
                         "--no-sequence-parallel", "--software", "megatron-2021", "--recompute",
                         "selective"},
               Arguments{"llama3-70b", "--gpus", "64", "--stage", "3", "--shard", "8", "--offload",
                         "all", "--context-parallel", "2", "--software", "deepspeed-2021"});
  Arguments asked = options;
  asked.insert(asked.end(), {"--sequence", "2048"});
  Arguments planned = asked;
  planned.insert(planned.end(), {"--cluster", "dgx-h100"});
  const Json plan = plan_json(planned);
  const Json memory = memcalc_json(asked)["results"][0];
  for (const Json& part : plan["memory"])
    CHECK(memory[part["part"].get<std::string>() + "_bytes"] == part["bytes"]);
  CHECK(memory["total_bytes"] == plan["peak_bytes"]);
}

// The same without processes: the plans that shard-plan goes through, asked of memcalc's options.
TEST_CASE("memcalc tells the memory of every plan that shard-plan searches, of every model",
          "[cmd]") {
  for (const PublishedModel& model : published_models()) {
    TrainCase base{&model, &find_hardware("dgx-h100"), &find_software("fsdp"), {.gpus = 64}};
    MemcalcOptions asked;
    asked.model = model.name;
    asked.gpus = "64";
    asked.software = "fsdp";
    asked.sequence = int(base.plan.sequence);
    uint64_t plans = 0;
    uint64_t different = 0;
    for_each_plan(base, full_grid(base, 64), [&](const TrainCase& question) {
      asked.stages = std::to_string(question.plan.stage);
      asked.plan = question.plan;
      ++plans;
      const std::vector<TrainCase> cases = cases_of(asked);
      different +=
          cases.size() != 1 || predict_memory(cases[0]).total() != predict_memory(question).total();
    });
    CAPTURE(model.name, plans);
    CHECK(plans > 1000);
    CHECK(different == 0);
  }
}

TEST_CASE("shard-plan tells three changes where a model does not fit", "[cmd]") {
  const Json report = plan_json({"llama3-8b", "--cluster", "dgx-h100", "--stage", "1",
                                 "--micro-batch", "4", "--limit", "70GB"});
  CHECK(report["fits"] == false);
  REQUIRE(report["changes"].size() == 3);
  for (const Json& change : report["changes"]) {
    CHECK(change["peak_bytes"].get<uint64_t>() <= 70'000'000'000u);
    CHECK(change["saved_bytes"].get<uint64_t>() ==
          report["peak_bytes"].get<uint64_t>() - change["peak_bytes"].get<uint64_t>());
  }
}

TEST_CASE("where nothing fits, the planners say so in place of an empty table", "[cmd]") {
  const auto arguments =
      GENERATE(std::vector<std::string>{"memcalc", "gpt2", "--limit", "4GB", "--gpus", "1",
                                        "--stage", "0", "--sequence", "100000"},
               std::vector<std::string>{"shard-plan", "megatron-1t", "--cluster", "dgx-h100",
                                        "--limit", "1GB"});
  const Outcome outcome = run_gxp(arguments);
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.out, "\n\nno other stage, recomputation, "));
  CHECK_FALSE(contains(outcome.out, "change that makes it fit"));
}

TEST_CASE("shard-plan --search ends with the fastest plan that fits", "[cmd]") {
  const Json report = plan_json(
      {"llama3-70b", "--cluster", "dgx-h100", "--gpus", "64", "--global-batch", "256", "--search"});
  CHECK(report["tried"] > 1000);
  const Json& plans = report["plans"];
  REQUIRE(plans.size() > 1);
  CHECK(plans.back()["step_seconds"] < plans.front()["step_seconds"]);
  CHECK(plans.back()["peak_bytes"] <= report["limit_bytes"]);
}

TEST_CASE("shard-plan takes a cluster file and a config.json", "[cmd]") {
  const Json report =
      plan_json({GXP_TEST_DATA "/ckpt/hf_gpt2", "--cluster",
                 GXP_SOURCE_DIR "/examples/cluster.toml", "--gpu", "a100-80gb", "--gpus", "16"});
  CHECK(report["gpus"] == 16);
  CHECK(report["gpu"] == "a100-80gb");
}

TEST_CASE("plans say that a sequence is longer than the model's positions", "[cmd]") {
  const Json time = plan_json({"gpt2", "--cluster", "dgx-h100", "--sequence", "2048"});
  const Json memory = memcalc_json({"llama3-8b", "--gpus", "8", "--sequence", "8193"});
  CHECK(time["positions"] ==
        "a sequence of 2048 exceeds the model's 1024 positions, which are learned: it needs a "
        "model with more of them");
  CHECK(memory["positions"] == "a sequence of 8193 exceeds the model's 8192 positions");
  CHECK_FALSE(memcalc_json({"gpt2", "--gpus", "8", "--sequence", "1024"}).contains("positions"));
}

TEST_CASE("shard-plan refuses a model's plan in one line that says why", "[cmd]") {
  const auto [arguments, words] = GENERATE(table<Arguments, std::string>(
      {{{"llama3-8b"}, "add --cluster"},
       {{"llama3-8c", "--cluster", "dgx-h100"}, "did you mean 'llama3-8b'"},
       {{"llama3-8b", "--cluster", "dgx-h10"}, "did you mean 'dgx-h100'"},
       {{"llama3-8b", "--cluster", "dgx-h100", "--gpu", "h100"}, "has its own"},
       {{"llama3-8b", "--cluster", GXP_SOURCE_DIR "/examples/cluster.toml"}, "add --gpu"},
       {{"llama3-8b", "--cluster", "dgx-h100", "--software", "fsdq"}, "did you mean 'fsdp'"},
       {{"llama3-8b", "--cluster", "dgx-h100", "--limit", "many"}, "must be a size above 0"},
       {{"llama3-8b", "--cluster", "dgx-h100", "--precision", "fp4"}, "must be one of: bf16"},
       {{"llama3-8b", "--cluster", "dgx-a100", "--precision", "fp8"}, "has no fp8"},
       {{"llama3-8b", "--cluster", "dgx-h100", "--gpus", "12", "--tensor-parallel", "8"},
        "does not divide 12"},
       {{"llama3-8b", "--cluster", "dgx-h100", "--global-batch", "12"}, "must be a multiple of 8"},
       {{"llama3-8b", "--cluster", "dgx-h100", "--nproc", "8"}, "--nproc is for a run file"},
       {{"run.toml", "--limit", "1GB"}, "needs --search"},
       {{"run.toml", "--cluster", "dgx-h100"}, "--cluster is for a MODEL"}}));
  const Outcome outcome = plan(arguments);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  REQUIRE(outcome.errors().size() == 1);
  CHECK(contains(outcome.errors()[0], words));
}

}  // namespace
}  // namespace gxp
