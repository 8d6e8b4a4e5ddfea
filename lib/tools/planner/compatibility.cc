#include "lib/tools/planner/compatibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/find_row.h"
#include "lib/base/text/joined.h"

namespace gxp {
namespace {

constexpr std::array kAllStages = {0, 1, 2, 3};
constexpr std::array k2And3 = {2, 3};

constexpr std::array kCalculators = {
    Calculator{"paper", kAllStages, false, ask_paper},
    Calculator{"deepspeed", k2And3, true, ask_deepspeed},
};

// DeepSpeed's main memory is 6 bytes times parameters times GPUs: with more, 64 bits overflow.
constexpr double kMostParameterCopies = 1e18;

// The mixed precision of the ZeRO paper: 16 bits, with master weights and moments in float32.
bool is_mixed(const Precision& precision) {
  return precision.parameter == 2 && precision.gradient == 2 && precision.master == 4 &&
         precision.moment == 4;
}

}  // namespace

std::span<const Calculator> calculators() { return kCalculators; }

Support answers(const Calculator& calculator, const CalculatorInput& input) {
  if (std::ranges::find(calculator.stages, input.stage) == calculator.stages.end())
    return {false, fmt::format("it has no answer for stage {}; use --stage {}", input.stage,
                               joined(calculator.stages, ","))};
  if (!is_mixed(*input.precision))
    return {false, fmt::format("it does not know precision {}; use one of: bf16, fp16",
                               input.precision->name)};
  if (double(input.parameters) * input.gpus > kMostParameterCopies)
    return {false, "parameters x GPUs exceed 1e18, its limit; use fewer GPUs"};
  if (calculator.by_hosts && input.stage == 3 && input.largest_layer == 0)
    return {false,
            "stage 3 depends on the largest layer, which --params does not give; add "
            "--largest-layer, or name a model"};
  return {};
}

std::vector<CalculatorAnswer> ask(const Calculator& calculator, const CalculatorInput& input) {
  const Support support = answers(calculator, input);
  if (!support) fail(ErrorKind::kUsage, "compare with {}: {}", calculator.name, support.reason);
  return calculator.answer(input);
}

const Calculator& find_calculator(std::string_view name) {
  return find_row(kCalculators, name, "--compat");
}

std::vector<CalculatorAnswer> ask_paper(const CalculatorInput& input) {
  constexpr std::array kNames = {"baseline", "P_os", "P_os+g", "P_os+g+p"};
  constexpr const char* kSource = "arXiv:1910.02054, figure 1, K = 12";
  CalculatorAnswer answer;
  answer.options = kNames[size_t(input.stage)];
  double total = 0;
  const auto add = [&](const char* component, int bytes, int first_sharded_stage) {
    const bool sharded = input.stage >= first_sharded_stage;
    const double each = double(bytes) * double(input.parameters) / (sharded ? input.gpus : 1);
    std::string numbers = fmt::format("{} x {}", bytes, input.parameters);
    if (sharded) numbers += fmt::format(" / {}", input.gpus);
    answer.terms.push_back({component, fmt::format("{} P{}", bytes, sharded ? " / N" : ""),
                            std::move(numbers), uint64_t(each), kSource});
    total += each;
  };
  add("parameters", 2, 3);
  add("gradients", 2, 2);
  add("optimizer", 12, 1);
  answer.gpu_bytes = uint64_t(total);
  answer.printed = fmt::format("{:.2f} GB", total / 1e9);
  return {answer};
}

}  // namespace gxp
