#include <fmt/format.h>

#include <cmath>

#include "lib/tools/planner/predict_memory.h"
#include "lib/tools/planner/predict_time.h"
#include "tests/catch.h"
#include "tests/tools/planner/csv.h"
#include "tests/tools/planner/published_runs.h"

namespace gxp {
namespace {

struct Errors {
  int count = 0;
  double mean = 0;
  double worst = 0;
  std::string worst_name;
};

Errors errors_of(const PublishedRuns& table, std::string_view generation) {
  Errors errors;
  for (const PublishedRun& run : table.runs) {
    if (run.question.hardware->gpu->generation->name != generation) continue;
    const double error = std::abs(predict_time(run.question).seconds() / run.seconds - 1);
    errors.mean += error;
    ++errors.count;
    if (error > errors.worst) errors.worst_name = run.name;
    errors.worst = std::max(errors.worst, error);
  }
  if (errors.count > 0) errors.mean /= errors.count;
  return errors;
}

struct Bar {
  PublishedRuns (*read)();
  const char* generation;
  int count;
  double mean;
  double worst;
};

TEST_CASE("steps of published runs take what is predicted", "[estimate]") {
  // The worst of Ampere are two rows whose neighbours in the table are faster by a quarter: MPT 30B
  // at 8192 tokens and 760M at 512, both at the edge of the memory.
  const auto bar = GENERATE(Bar{read_llm_foundry, "ampere", 70, 0.04, 0.245},
                            Bar{read_llm_foundry, "hopper", 38, 0.03, 0.09},
                            Bar{read_torchtitan, "hopper", 11, 0.05, 0.11},
                            Bar{read_fms_fsdp, "ampere", 5, 0.06, 0.15},
                            Bar{read_fms_fsdp, "hopper", 5, 0.04, 0.06},
                            Bar{read_megatron_bridge, "hopper", 7, 0.05, 0.10},
                            Bar{read_megatron_bridge, "blackwell", 18, 0.05, 0.10},
                            Bar{read_megatron_bridge, "blackwell-ultra", 13, 0.05, 0.10});
  const Errors errors = errors_of(bar.read(), bar.generation);
  CAPTURE(bar.generation, errors.mean, errors.worst, errors.worst_name);
  CHECK(errors.count == bar.count);
  CHECK(errors.mean <= bar.mean);
  CHECK(errors.worst <= bar.worst);
}

TEST_CASE("what published runs held fits into their GPUs", "[estimate]") {
  for (const PublishedRun& run : read_llm_foundry().runs) {
    const double share = double(predict_memory(run.question).total()) /
                         double(run.question.hardware->gpu->memory_bytes);
    CAPTURE(run.name);
    CHECK(share < 1.05);
    CHECK(share > 0.25);
  }
}

// The allocator's peak, which is without the context.
TEST_CASE("torchtitan's runs peak where it is predicted", "[estimate]") {
  constexpr double kGiB = 1 << 30;
  int count = 0;
  double mean = 0;
  for (const PublishedRun& run : read_torchtitan().runs) {
    if (run.peak_gib == 0) continue;
    const PlanMemory memory = predict_memory(run.question);
    const double error = double(memory.total() - memory.context) / kGiB / run.peak_gib - 1;
    CAPTURE(run.name, error);
    CHECK(std::abs(error) < 0.06);
    mean += std::abs(error);
    ++count;
  }
  REQUIRE(count == 7);
  CHECK(mean / count < 0.02);
}

TEST_CASE("the lines of an explanation add up to the memory", "[estimate]") {
  const auto& software = GENERATE(from_range(softwares().begin(), softwares().end()));
  const int stage = GENERATE(0, 1, 2, 3);
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    for (const int parallel : {1, 2}) {
      for (const StateOffload offload : {StateOffload::kNone, StateOffload::kAll}) {
        const TrainPlan plan{.gpus = 16,
                             .tensor = parallel,
                             .pipeline = parallel,
                             .stage = stage,
                             .recompute = recompute,
                             .offload = offload};
        const TrainCase question{&find_published_model("llama3-8b"), nullptr, &software, plan};
        uint64_t sum = 0;
        for (const Term& term : explain_memory(question)) sum += term.bytes;
        CAPTURE(software.name, stage, int(recompute), parallel, int(offload));
        CHECK(sum == predict_memory(question).total());
      }
    }
  }
}

TEST_CASE("DeepSpeed's buckets and the context are the worked values", "[estimate]") {
  const auto [stage, gb] = GENERATE(table<int, double>({{1, 3 + 4 * 7e9 / 8e9}, {3, 3.1}}));
  const PublishedModel& model = find_published_model("llama2-7b");
  const TrainCase question{
      &model, nullptr, &find_software("deepspeed-2021"), {.gpus = 8, .stage = stage}};
  const double scale = double(parameter_count(model)) / 7e9;
  const PlanMemory memory = predict_memory(question);
  CHECK(double(memory.buffers) / 1e9 == Approx(stage == 3 ? gb : 3 + (gb - 3) * scale));
  CHECK(double(memory.context) / (1 << 30) == Approx(0.92 + 1.45));
}

TEST_CASE("a step is the sum of its parts, and longer with less of a machine", "[estimate]") {
  const Hardware hardware = find_hardware("dgx-h100");
  Hardware slow = hardware;
  slow.links.network_bytes_per_s /= 8;
  TrainCase question{&find_published_model("llama3-8b"),
                     &hardware,
                     &find_software("fsdp"),
                     {.sequence = 8192, .gpus = 64, .recompute = Recompute::kFull}};
  const StepPrediction step = predict_time(question);
  CHECK(step.seconds() > step.products);
  CHECK(step.sharding <= step.communication);
  CHECK(step.recompute > 0);
  question.hardware = &slow;
  CHECK(predict_time(question).sharding > step.sharding);
  CHECK(predict_time(question).products == step.products);
  question.hardware = &hardware;
  question.plan.recompute = Recompute::kNone;
  CHECK(predict_time(question).seconds() < step.seconds());
}

// Worked values of 7e9 parameters, GB of a rank and step, on domains of 8 GPUs.
TEST_CASE("bytes by link class are those of the formulas", "[estimate]") {
  struct Row {
    int gpus, stage, shard;
    double domain, network;
  };
  const auto row =
      GENERATE(Row{8, 0, 0, 24.5, 0}, Row{8, 2, 0, 24.5, 0}, Row{8, 3, 0, 36.75, 0},
               Row{64, 3, 8, 36.75, 3.0625}, Row{64, 0, 0, 27.5625 * 7 / 8, 27.5625 / 8},
               Row{64, 3, 0, 41.34375 * 7 / 8, 41.34375 / 8});
  const TrainCase question{&find_published_model("llama2-7b"),
                           &find_hardware("dgx-h100"),
                           &find_software("fsdp"),
                           {.gpus = row.gpus, .stage = row.stage, .shard = row.shard}};
  const double scale = double(parameter_count(*question.model)) / 7e9 * 1e9;
  CAPTURE(row.gpus, row.stage, row.shard);
  const LinkBytes sent = predict_time(question).sent;
  CHECK(sent.domain == Approx(row.domain * scale));
  CHECK(sent.network == Approx(row.network * scale).margin(1));
}

TEST_CASE("communication hides from the published number of tokens on", "[estimate]") {
  const auto [flops, bandwidth, tokens] =
      GENERATE(table<double, double, int>({{989e12, 450e9, 2198},
                                           {989e12, 50e9, 19780},
                                           {312e12, 300e9, 1040},
                                           {312e12, 25e9, 12480}}));
  CHECK(int(std::lround(tokens_to_hide(flops, bandwidth, 1 << 20))) == tokens);
}

}  // namespace
}  // namespace gxp
