#include "tests/tools/planner/published_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <sstream>

#include "tests/tools/planner/csv.h"

namespace gxp {
namespace {

int number(const CsvRow& row, const char* key, int absent = 0) {
  const std::string& text = row.at(key);
  return text.empty() || text == "n/a" ? absent : std::stoi(text);
}

double seconds_of(const TrainPlan& plan, double tokens_per_s_gpu) {
  return double(plan.tokens_per_step()) / plan.gpus / tokens_per_s_gpu;
}

std::vector<std::string> split_words(std::string text) {
  std::erase_if(text, [](char c) { return c == '(' || c == ')'; });
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string bridge_model(const std::string& name) {
  if (name == "LLAMA3_8B") return "llama3-8b";
  if (name == "LLAMA3_70B") return "llama3-70b";
  return name == "LLAMA3.1_405B" ? "llama3.1-405b" : "";
}

// Why no plan says the row; "" if one does.
std::string obstacle(const CsvRow& row) {
  if (bridge_model(row.at("model")).empty()) return "mixture of experts or state space";
  if (row.at("task") == "LoRA") return "frozen weights";
  return row.at("precision") == "NVFP4" ? "fp4" : "";
}

TrainPlan bridge_plan(const CsvRow& row) {
  TrainPlan plan{.sequence = uint64_t(number(row, "seq_len")),
                 .micro_batch = uint64_t(number(row, "mbs")),
                 .gpus = number(row, "gpus"),
                 .tensor = number(row, "tp"),
                 .pipeline = number(row, "pp"),
                 .context = number(row, "cp")};
  // Where a Llama's stages do not tell, its neighbours have five pieces.
  plan.interleave = number(row, "vp", plan.pipeline > 1 ? 5 : 1);
  plan.accumulation =
      std::max<uint64_t>(1, uint64_t(number(row, "gbs")) / plan.replicas() / plan.micro_batch);
  plan.stage = number(row, "fsdp") > 1 ? 3 : 1;
  return plan;
}

}  // namespace

PublishedRuns read_llm_foundry() {
  PublishedRuns result;
  for (const CsvRow& row : read_published("mpt-llm-foundry.csv")) {
    PublishedModel& model =
        result.models.emplace_back(find_published_model("mpt-" + row.at("model")));
    model.positions = uint64_t(number(row, "seq_len"));
    const std::string& gpu = row.at("gpu");
    TrainCase question{&model,
                       &find_hardware(gpu == "a100_40gb"   ? "a100-40gb-roce"
                                      : gpu == "a100_80gb" ? "dgx-a100"
                                                           : "dgx-h100"),
                       &find_software("llm-foundry"),
                       {.sequence = uint64_t(number(row, "seq_len")),
                        .micro_batch = uint64_t(number(row, "microbatch")),
                        .accumulation = uint64_t(number(row, "grad_accum")),
                        .gpus = number(row, "gpus")}};
    TrainPlan& plan = question.plan;
    plan.stage = row.at("sharding") == "SHARD_GRAD_OP" ? 2 : 3;
    if (row.at("act_ckpt") == "True") plan.recompute = Recompute::kFull;
    if (contains(row.at("precision"), "fp8")) plan.format = NumberFormat::kFp8;
    const double tokens = uint64_t(number(row, "global_batch")) * plan.sequence;
    result.runs.push_back({fmt::format("{} {} {} {} GPUs", row.at("table").substr(0, 9), model.name,
                                       plan.sequence, plan.gpus),
                           question, tokens / plan.gpus / std::stod(row.at("tokens_per_s_gpu"))});
  }
  return result;
}

PublishedRuns read_torchtitan() {
  PublishedRuns result;
  for (const CsvRow& row : read_published("torchtitan-llama3.csv")) {
    const std::string& parallel = row.at("parallelism");
    const bool staged = contains(parallel, "PP8");
    const std::string size = row.at("model").substr(row.at("model").rfind('-') + 1);
    const auto& model = find_published_model(size == "8B"    ? "llama3-8b"
                                             : size == "70B" ? "llama3-70b"
                                                             : "llama3.1-405b");
    TrainPlan plan{.sequence = uint64_t(number(row, "seq_len")),
                   .micro_batch = uint64_t(number(row, "local_batch")),
                   .gpus = number(row, "gpus"),
                   .tensor = contains(parallel, "TP8") ? 8 : 1,
                   .pipeline = staged ? 8 : 1};
    if (staged) {  // its default: as many micro-batches as stages
      plan.accumulation = 8;
      plan.micro_batch /= 8;
      plan.interleave = contains(row.at("schedule"), "Interleaved") ? 2 : 1;
    }
    plan.recompute = row.at("act_ckpt") == "full" ? Recompute::kFull : Recompute::kSelective;
    if (row.at("float8") != "no") plan.format = NumberFormat::kFp8;
    const char* software = row.at("compile") == "no"     ? "fsdp-eager"
                           : row.at("async_tp") == "yes" ? "fsdp-async-tp"
                                                         : "fsdp";
    const std::string& peak = row.at("peak_mem_gib");
    result.runs.push_back(
        {fmt::format("torchtitan {} {} {}", model.name, parallel, row.at("float8")),
         {&model, &find_hardware("h100-96gb-500w"), &find_software(software), plan},
         seconds_of(plan, std::stod(row.at("tokens_per_s_gpu"))),
         peak.empty() ? 0 : std::stod(peak)});
  }
  return result;
}

PublishedRuns read_megatron_bridge() {
  PublishedRuns result;
  for (const CsvRow& row : read_published("megatron-bridge-summary.csv")) {
    const std::string name =
        fmt::format("{} {} {}", row.at("release"), row.at("model"), row.at("system"));
    if (const std::string reason = obstacle(row); !reason.empty()) {
      result.out_of_scope.push_back(name + ": " + reason);
      continue;
    }
    std::string hardware = row.at("system");
    std::ranges::transform(hardware, hardware.begin(),
                           [](char c) { return char(std::tolower(c)); });
    const std::vector<std::string> tokens = split_words(row.at("tokens_per_s_gpu"));
    std::vector<std::string> formats = split_words(row.at("precision"));
    if (formats.empty()) formats = {"FP8-CS", "FP8-MX"};
    for (size_t i = 0; i < tokens.size(); ++i) {
      TrainCase question{&find_published_model(bridge_model(row.at("model"))),
                         &find_hardware(hardware), &find_software("megatron"), bridge_plan(row)};
      const std::string& format = formats[i];
      if (contains(format, "FP8"))
        question.plan.format = contains(format, "MX") ? NumberFormat::kMxfp8 : NumberFormat::kFp8;
      result.runs.push_back(
          {name + " " + format, question, seconds_of(question.plan, std::stod(tokens[i]))});
    }
  }
  return result;
}

PublishedRuns read_fms_fsdp() {
  PublishedRuns result;
  for (const CsvRow& row : read_published("fms-fsdp.csv")) {
    Hardware& hardware = result.hardware.emplace_back(
        find_hardware(row.at("gpu") == "a100_80gb" ? "dgx-a100" : "dgx-h100"));
    hardware.links.network_bytes_per_s = number(row, "gbit_per_host") * 1e9 / 8 / 8;
    TrainCase question{&find_published_model("llama2-" + row.at("model")),
                       &hardware,
                       &find_software(row.at("compile") == "yes" ? "fsdp" : "fsdp-eager"),
                       {.sequence = uint64_t(number(row, "seq_len")),
                        .micro_batch = uint64_t(number(row, "batch")),
                        .gpus = number(row, "gpus")}};
    TrainPlan& plan = question.plan;
    if (row.at("sharding") == "HSDP") plan.shard = 8;
    if (row.at("act_ckpt") == "selective") plan.recompute = Recompute::kSelective;
    if (row.at("act_ckpt") == "full") plan.recompute = Recompute::kFull;
    result.runs.push_back(
        {fmt::format("{} {} {}", question.model->name, row.at("gpu"), question.software->name),
         question, seconds_of(plan, std::stod(row.at("tokens_per_s_gpu")))});
  }
  return result;
}

}  // namespace gxp
