// The results of other calculators of model states, to the printed digit, including their
// truncations, units and defects.
//
// Seven billion parameters, 8 GPUs, ZeRO-2, Adam, in GiB per GPU: the ZeRO paper 24.45, DeepSpeed
// 27.71.
//
// One more calculator is one file, one row in the table. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/tools/planner/model_states.h"

namespace gxp {

struct CalculatorInput {
  uint64_t parameters = 0;
  uint64_t largest_layer = 0;  // parameters of the largest module; 0: not known
  int gpus = 1;
  int gpus_per_host = 1;  // divides gpus
  int stage = 0;
  const Precision* precision = &kBf16;

  [[nodiscard]] int hosts() const { return gpus / gpus_per_host; }
};

struct CalculatorAnswer {
  std::string options;                 // what the calculator assumes, in its words
  uint64_t gpu_bytes = 0;              // per GPU
  std::optional<uint64_t> host_bytes;  // main memory, "per CPU" in DeepSpeed's words
  std::string printed;                 // the calculator's own line
  std::vector<Term> terms;
};

struct Calculator {
  std::string_view name;        // "deepspeed"
  std::span<const int> stages;  // the options for which it has an answer
  bool by_hosts;  // depends on the GPUs of a host, and for stage 3 on the largest layer
  std::vector<CalculatorAnswer> (*answer)(const CalculatorInput& input);
};

std::span<const Calculator> calculators();

// Whether the calculator has an answer, or why not.
Support answers(const Calculator& calculator, const CalculatorInput& input);

// The calculator's answers: several where it goes through options by itself. kUsage, with the
// reason of answers(), if it has none.
std::vector<CalculatorAnswer> ask(const Calculator& calculator, const CalculatorInput& input);

// kUsage with a near match if there is none of that name.
const Calculator& find_calculator(std::string_view name);

// The ZeRO paper (arXiv:1910.02054, figure 1): K = 12 bytes of optimizer state, 2 + 2 of parameters
// and gradients, shards not rounded up, decimal GB.
std::vector<CalculatorAnswer> ask_paper(const CalculatorInput& input);

// estimate_zero2_model_states_mem_needs() of deepspeed/runtime/zero/stage_1_and_2.py and its twin
// in stage3.py. The main memory of ZeRO-2 with offload grows with the GPUs of all hosts though it
// is printed per host; "GB" are GiB.
std::vector<CalculatorAnswer> ask_deepspeed(const CalculatorInput& input);

}  // namespace gxp
