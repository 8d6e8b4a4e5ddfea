// The tools whose answer is one formula: the ZeRO paper, DeepSpeed's autotuner, Megatron-LM,
// accelerate.
#include "lib/estimate/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gxp {

namespace {

// Parameters and gradients of 2 bytes and an optimizer of more, sharded as ZeRO's stages do.
std::vector<ToolEstimate> add_states(const Question& question, int optimizer_bytes,
                                     const char* source, const char* options) {
  const auto parameters = double(question.parameters);
  ToolEstimate answer;
  answer.options = options;
  double total = 0;
  const auto add = [&](const char* component, int bytes, int first_sharded_stage) {
    const bool sharded = question.stage >= first_sharded_stage;
    const double each = bytes * parameters / (sharded ? question.gpus : 1);
    std::string numbers = fmt::format("{} x {:.0f}", bytes, parameters);
    if (sharded) numbers += fmt::format(" / {}", question.gpus);
    answer.terms.push_back({component, fmt::format("{} P{}", bytes, sharded ? " / N" : ""),
                            std::move(numbers), uint64_t(each), source});
    total += each;
  };
  add("parameters", 2, 3);
  add("gradients", 2, 2);
  add("optimizer", optimizer_bytes, 1);
  answer.gpu_bytes = uint64_t(total);
  answer.printed = fmt::format("{:.2f} GB", total / 1e9);
  return {answer};
}

}  // namespace

std::vector<ToolEstimate> ask_paper(const Question& question) {
  constexpr std::array kNames = {"baseline", "P_os", "P_os+g", "P_os+g+p"};
  return add_states(question, 12, "arXiv:1910.02054, figure 1, K = 12",
                    kNames[size_t(question.stage)]);
}

std::vector<ToolEstimate> ask_autotuner(const Question& question) {
  std::vector<ToolEstimate> answers =
      add_states(question, 16, "deepspeed/autotuning/autotuner.py", "");
  answers[0].printed = fmt::format("{} bytes", answers[0].gpu_bytes);  // it returns a number
  return answers;
}

namespace {

// Bytes per parameter, with d the data-parallel size.
struct DistributedOptimizer {
  std::string_view precision;
  int plain;    // without the distributed optimizer
  int whole;    // with it: on every rank
  int sharded;  // with it: divided by d
};

// "bf16" accumulates gradients in float32, "fp16" in float16.
constexpr std::array kMegatron = {DistributedOptimizer{"bf16", 18, 6, 12},
                                  DistributedOptimizer{"fp16", 20, 4, 16},
                                  DistributedOptimizer{"fp32", 16, 8, 8}};

// As Python prints round(value, 2).
std::string rounded(double value) {
  std::string text = fmt::format("{:.2f}", value);
  if (text.back() == '0') text.pop_back();
  return text;
}

// accelerate's convert_bytes(): powers of 1024 under decimal names.
std::string convert_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  auto size = double(bytes) / 1024;
  for (const char* unit : {"KB", "MB", "GB", "TB"}) {
    if (size < 1024) return fmt::format("{} {}", rounded(size), unit);
    size /= 1024;
  }
  return rounded(size) + " PB";
}

}  // namespace

std::vector<ToolEstimate> ask_megatron(const Question& question) {
  constexpr const char* kSource = "Megatron-LM docs/source/api-guide/dist_optimizer.md";
  constexpr double kMib = 1 << 20;
  const auto& row =
      *std::ranges::find(kMegatron, question.precision, &DistributedOptimizer::precision);
  const auto parameters = double(question.parameters);
  const bool distributed = question.stage > 0;
  const double each =
      distributed ? row.whole + double(row.sharded) / question.gpus : double(row.plain);
  const double bytes = each * parameters;
  const std::string formula = distributed ? fmt::format("({} + {} / d) P", row.whole, row.sharded)
                                          : fmt::format("{} P", row.plain);
  const std::string numbers = distributed ? fmt::format("({} + {} / {}) x {:.0f}", row.whole,
                                                        row.sharded, question.gpus, parameters)
                                          : fmt::format("{} x {:.0f}", row.plain, parameters);
  return {
      {distributed ? "distributed optimizer; gradients not sharded" : "no distributed optimizer",
       uint64_t(bytes),
       std::nullopt,
       fmt::format("Theoretical memory footprints: weight and optimizer={:.2f} MB", bytes / kMib),
       {{"weight and optimizer", formula, numbers, uint64_t(bytes), kSource}}}};
}

std::vector<ToolEstimate> ask_accelerate(const Question& question) {
  constexpr const char* kSource = "accelerate commands/estimate.py, estimate_training_usage";
  const uint64_t parameters = question.parameters;
  const bool full = question.precision == "fp32";
  ToolEstimate answer;
  answer.options = full ? "float32, no sharding" : "float16, no sharding";
  const auto add = [&](const char* component, uint64_t bytes) {
    answer.terms.push_back({component, fmt::format("{} P", bytes),
                            fmt::format("{} x {}", bytes, parameters), bytes * parameters,
                            kSource});
    answer.gpu_bytes = std::max(answer.gpu_bytes, bytes * parameters);
  };
  add("model", 4);
  add("gradients", full ? 4 : 6);
  add("optimizer", 8);
  add("step", full ? 16 : 8);
  answer.options += "; the largest row, not the sum";
  answer.printed = convert_bytes(answer.gpu_bytes);
  return {answer};
}

}  // namespace gxp
