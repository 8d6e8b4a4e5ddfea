#include "lib/estimate/compatibility.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "lib/base/find_row.h"
#include "lib/estimate/tools.h"

namespace gxp {
namespace {

constexpr std::array kAllStages = {0, 1, 2, 3};
constexpr std::array kUpTo2 = {0, 1, 2};
constexpr std::array k2And3 = {2, 3};

constexpr std::array<std::string_view, 2> kHalf = {"bf16", "fp16"};
constexpr std::array<std::string_view, 3> kHalfAndFull = {"bf16", "fp16", "fp32"};

constexpr std::array kTools = {
    Tool{"paper", "ZeRO paper, figure 1", kAllStages, kHalf, ask_paper},
    Tool{"deepspeed", "DeepSpeed's estimators, as coded", k2And3, kHalf, ask_deepspeed},
    Tool{"deepspeed-docs", "DeepSpeed's estimators, as documented", k2And3, kHalf,
         ask_deepspeed_docs},
    Tool{"autotuner", "DeepSpeed's autotuner", kAllStages, kHalf, ask_autotuner},
    Tool{"megatron", "Megatron-LM's distributed optimizer", kUpTo2, kHalfAndFull, ask_megatron},
    Tool{"eleuther", "EleutherAI's calc_transformer_mem.py", kAllStages, kHalfAndFull,
         ask_eleuther},
    Tool{"accelerate", "accelerate estimate-memory", kAllStages, kHalfAndFull, ask_accelerate},
};

// DeepSpeed's main memory is 6 bytes times parameters times GPUs: with more, 64 bits overflow.
constexpr double kMostParameterCopies = 1e18;

}  // namespace

std::span<const Tool> compatible_tools() { return kTools; }

Support answers(const Tool& tool, const Question& question) {
  if (std::ranges::find(tool.stages, question.stage) == tool.stages.end())
    return {false, fmt::format("it has no answer for stage {}; use --stage {}", question.stage,
                               fmt::join(tool.stages, ","))};
  if (std::ranges::find(tool.precisions, question.precision) == tool.precisions.end())
    return {false, fmt::format("it does not know precision {}; use one of: {}", question.precision,
                               fmt::join(tool.precisions, ", "))};
  if (double(question.parameters) * question.gpus > kMostParameterCopies)
    return {false, "parameters times GPUs pass 1e18, more than it can count; ask for fewer GPUs"};
  const bool deepspeed = tool.name.starts_with("deepspeed");
  if (deepspeed && question.stage == 3 && question.largest_layer == 0)
    return {false,
            "stage 3 depends on the largest layer, which --params does not tell; give "
            "--largest-layer, or a model's name"};
  return {};
}

std::vector<ToolEstimate> ask(const Tool& tool, const Question& question) {
  const Support support = answers(tool, question);
  if (!support) fail(ErrorKind::kUsage, "compare with {}: {}", tool.name, support.reason);
  return tool.answer(question);
}

const Tool& find_tool(std::string_view name) { return find_row(kTools, name, "--compat"); }

}  // namespace gxp
