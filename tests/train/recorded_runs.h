// Runs of the models of tests/data/models, whose losses, logits and gradients transformers and PEFT
// have recorded in fp32.
#pragma once

#include <string>
#include <vector>

#include "tests/train/golden.h"
#include "tests/train/reference_files.h"

namespace gxp {

inline const std::string kRecorded = std::string(GXP_TEST_DATA) + "/models/";

// A model of each family at least, and the settings that change its arithmetic.
inline const std::vector<std::string> kTrainedModels = {"gpt2-tied",
                                                        "gpt2-untied",
                                                        "gpt2-options",
                                                        "neox-parallel",
                                                        "neox-sequential",
                                                        "llama-plain",
                                                        "llama-gqa",
                                                        "llama-rope-yarn",
                                                        "llama-mlp-bias",
                                                        "mistral-window",
                                                        "qwen2-window",
                                                        "qwen3",
                                                        "smollm3-listed",
                                                        "gemma",
                                                        "gemma2",
                                                        "gemma3",
                                                        "phi",
                                                        "phi-qk-norm",
                                                        "phi3",
                                                        "olmo2",
                                                        "granite",
                                                        "granite-untied-bias"};

inline const std::vector<std::string> kTrainedAdapters = {
    "gpt2-lora-qkv",  "llama-lora-all", "llama-lora-qv", "phi3-lora-fused",
    "qwen3-lora-all", "qwen3-lora-qv",  "qwen3-lora-rs"};

inline NamedTensors reference_of(const std::string& name) {
  return read_checkpoint(kRecorded + name + "/reference.safetensors");
}

inline bool is_adapter(const std::string& name) { return name.find("-lora-") != std::string::npos; }

// The model below an adapter.
inline std::string base_of(const std::string& adapter) {
  if (adapter.starts_with("llama")) return "llama-gqa";
  return adapter.starts_with("gpt2") ? "gpt2-tied" : adapter.substr(0, adapter.find('-'));
}

// Where a run of the directory begins: a model, or an adapter and the model below.
inline Settings start_of(const std::string& name) {
  if (!is_adapter(name)) return {"model.init=" + kRecorded + name};
  return {"model.init=" + kRecorded + base_of(name), "lora.init=" + kRecorded + name};
}

// Five steps on both rows, as the references were made.
RunConfig five_steps(const std::string& rows, const NamedTensors& reference, int world_size,
                     const Settings& sets);

// The losses and norms are the recorded ones.
void check_steps(const Trained& trained, const NamedTensors& reference);

// On the host.
Backend make_host(const TrainConfig& config);

// Logits and losses of five steps on one rank are within the rounding of `precision` (fp32, bf16 or
// fp16) of the recorded ones, which are fp32's. `make` makes the rank's device.
void check_precision(const std::string& name, const std::string& precision,
                     Backend (*make)(const TrainConfig& config));

}  // namespace gxp
