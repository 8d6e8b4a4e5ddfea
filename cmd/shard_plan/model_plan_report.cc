#include "cmd/shard_plan/model_plan.h"

#include <chrono>

#include "cmd/plan_options.h"
#include "lib/tools/planner/predict_memory.h"
#include "lib/tools/planner/predict_time.h"
#include "lib/tools/planner/search.h"

namespace gxp {
namespace {

double tokens_per_s_gpu(const TrainPlan& plan, double seconds) {
  return double(plan.tokens_per_step()) / plan.gpus / seconds;
}

double peak_flops(const TrainCase& question) {
  const Gpu& gpu = *question.hardware->gpu;
  return question.plan.format == NumberFormat::kBf16 ? gpu.flops_16 : gpu.flops_8;
}

void add_facts(Report& report, const TrainCase& question, const StepPrediction& step) {
  const TrainPlan& plan = question.plan;
  const double rate = model_flops_per_gpu(question) / step.seconds();
  const auto tokens = int64_t(plan.sequence * plan.micro_batch) / plan.context;
  std::vector<Fact> facts = {
      {{"parameters"}, int64_t(parameter_count(*question.model))},
      {{"gpus"}, int64_t{plan.gpus}},
      {{"tokens_per_step", "tokens of a step"}, int64_t(plan.tokens_per_step())},
      {{"step_seconds", "seconds of a step"}, step.seconds()},
      {{"tokens_per_s_gpu", "tokens/s of a GPU"}, tokens_per_s_gpu(plan, step.seconds())},
      {{"model_tflops_gpu", "model TFLOP/s of a GPU, attention's causal half"}, rate / 1e12},
      {{"mfu_percent", "MFU, percent"}, 100 * rate / peak_flops(question)},
      {{"comm_seconds", "seconds of sharding communication"}, step.communication},
      {{"exposed_comm_seconds", "seconds of exposed sharding communication"}, step.sharding},
      {{"domain_bytes", "sent by a GPU within its NVLink domain", Style::kBytes},
       int64_t(step.sent.domain)},
      {{"network_bytes", "sent by a GPU to other NVLink domains", Style::kBytes},
       int64_t(step.sent.network)},
      {{"tokens_of_micro_batch", "tokens of a micro-batch on a GPU"}, tokens}};
  if (const std::string note = beyond_positions(*question.model, plan.sequence); !note.empty())
    facts.push_back({{"positions"}, note});
  if (plan.shards() > 1)
    facts.push_back({{"tokens_to_hide", "tokens that hide a gather"}, tokens_to_hide(question)});
  report.facts.insert(report.facts.end(), facts.begin(), facts.end());
}

void add_parts(Report& report, const StepPrediction& step) {
  Table& table = report.add_table("parts", {{"part"}, {"seconds"}, {"percent"}});
  const auto add = [&](const char* part, double seconds) {
    if (seconds > 0) table.add_row(part, seconds, 100 * seconds / step.seconds());
  };
  add("products", step.products);
  add("attention", step.attention);
  add("norms, activations, residuals", step.rest);
  add("logits and loss", step.head);
  add("computed again", step.recompute);
  add("tensor parallelism, exposed", step.tensor);
  add("sharding, exposed", step.sharding);
  add("pipeline bubble", step.bubble);
  add("update", step.update);
  add("host", step.host);
}

void add_memory(Report& report, const PlanMemory& memory, uint64_t limit) {
  const std::vector<Fact> facts = {
      {{"peak_bytes", "peak memory", Style::kBytes}, int64_t(memory.total())},
      {{"limit_bytes", "memory limit", Style::kBytes}, int64_t(limit)},
      {{"fits"}, memory.total() <= limit},
      {{"binding", "largest part"}, std::string(binding_part(memory))}};
  report.facts.insert(report.facts.end(), facts.begin(), facts.end());
  Table& table = report.add_table("memory", {{"part"}, {"bytes", "GiB", Style::kGiB}});
  for (const MemoryPart& part : parts_of(memory)) table.add_row(part.name, part.bytes);
}

void add_changes(Report& report, const TrainCase& question, uint64_t limit) {
  const PlanCost now = cost_of(question);
  Table& table = report.add_table("changes", {{"change", "change that makes it fit"},
                                              {"peak_bytes", "peak GiB", Style::kGiB},
                                              {"saved_bytes", "saved GiB", Style::kGiB},
                                              {"step_seconds", "seconds of a step"},
                                              {"more_seconds", "more"}});
  table.when_empty = kNothingFits;
  for (const auto& way : plans_that_fit(question, limit)) {
    table.add_row(to_options(way.changes), way.cost.bytes,
                  int64_t(now.bytes) - int64_t(way.cost.bytes), way.cost.seconds,
                  way.cost.seconds - now.seconds);
  }
}

}  // namespace

void add_plan(Report& report, const TrainCase& question, uint64_t limit_bytes) {
  const StepPrediction step = predict_time(question);
  const PlanMemory memory = predict_memory(question);
  add_facts(report, question, step);
  add_parts(report, step);
  add_memory(report, memory, limit_bytes);
  if (memory.total() > limit_bytes) add_changes(report, question, limit_bytes);
}

void add_search(Report& report, const TrainCase& question, uint64_t global_batch,
                uint64_t limit_bytes) {
  const auto begin = std::chrono::steady_clock::now();
  const SearchResult result =
      search_plans(question, full_grid(question, global_batch), limit_bytes);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const std::vector<Fact> facts = {
      {{"global_batch", "sequences of a step"}, int64_t(global_batch)},
      {{"limit_bytes", "memory of a GPU", Style::kBytes}, int64_t(limit_bytes)},
      {{"tried", "plans"}, int64_t(result.tried)},
      {{"fitting", "that fit"}, int64_t(result.fitting)},
      {{"search_seconds", "seconds of the search"}, took.count()}};
  report.facts.insert(report.facts.end(), facts.begin(), facts.end());
  Table& table = report.add_table("plans", {{"peak_bytes", "peak GiB", Style::kGiB},
                                            {"step_seconds", "seconds"},
                                            {"tokens_per_s_gpu", "tokens/s of a GPU"},
                                            {"stage"},
                                            {"shard"},
                                            {"tensor"},
                                            {"pipeline"},
                                            {"interleave"},
                                            {"micro_batch", "micro-batch"},
                                            {"accumulation"},
                                            {"recompute"},
                                            {"offload"}});
  table.when_empty = "no plan fits; use a larger --limit, more GPUs or a smaller model";
  for (const auto& [plan, cost, changes] : result.pareto) {
    table.add_row(cost.bytes, cost.seconds, tokens_per_s_gpu(plan, cost.seconds), plan.stage,
                  plan.shards(), plan.tensor, plan.pipeline, plan.interleave, plan.micro_batch,
                  plan.accumulation, kRecomputeNames[size_t(plan.recompute)],
                  kOffloadNames[size_t(plan.offload)]);
  }
}

}  // namespace gxp
