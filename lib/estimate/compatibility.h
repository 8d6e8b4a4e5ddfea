// What other calculators answer to the same question, to the digit that they print: their
// truncations, units and defects included. For comparing, and for trusting neither blindly.
//
// Seven billion parameters, 8 GPUs, ZeRO-2, Adam, in GiB per GPU: paper 24.45, DeepSpeed 27.71,
// its documentation 39.12, EleutherAI 26.08 and a 0.93 bucket, Megatron 48.89, accelerate 52.15.
//
// One more tool is one file, one row in the table. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/arch/published_models.h"
#include "lib/base/error.h"
#include "lib/estimate/term.h"

namespace gxp {

struct Question {
  uint64_t parameters = 0;
  uint64_t largest_layer = 0;             // parameters of the largest module; 0: not known
  const PublishedModel* model = nullptr;  // for a tool that counts parameters by itself
  int gpus = 1;
  int gpus_per_host = 1;  // divides gpus
  int stage = 0;
  std::string_view precision = "bf16";  // a name of precisions() in model_states.h

  // Read by EleutherAI's calculator alone, and only if there is a model.
  int sequence = 0;  // tokens; 0: the tool's own default for the model
  int micro_batch = 1;
  int tensor_parallel = 1;
  bool checkpoint_activations = false;
  bool partition_activations = false;

  [[nodiscard]] int hosts() const { return gpus / gpus_per_host; }
};

struct ToolEstimate {
  std::string options;                 // what the tool assumes, in its words
  uint64_t gpu_bytes = 0;              // per GPU
  std::optional<uint64_t> host_bytes;  // main memory, "per CPU" in DeepSpeed's words
  std::string printed;                 // the tool's own line
  std::vector<Term> terms;
};

struct Tool {
  std::string_view name;  // "deepspeed"
  std::string_view meaning;
  std::span<const int> stages;  // those that it has an answer for
  std::span<const std::string_view> precisions;
  std::vector<ToolEstimate> (*answer)(const Question& question);
};

std::span<const Tool> compatible_tools();

// Whether the tool answers at all, or why not.
Support answers(const Tool& tool, const Question& question);

// What the tool says: several answers where it goes through options by itself. kUsage, with the
// reason of answers(), if it has none.
std::vector<ToolEstimate> ask(const Tool& tool, const Question& question);

// kUsage with a near match if there is none of that name.
const Tool& find_tool(std::string_view name);

}  // namespace gxp
