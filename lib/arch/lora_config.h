// The user's settings of low-rank adapters (Hu et al., arXiv:2106.09685): the section [lora] of a run
// file (lib/config/run_config.h).
#pragma once

#include <string>
#include <vector>

#include "lib/base/schema.h"

namespace gxp {

struct LoraConfig {
  int rank = 0;  // 0: no adapters
  double alpha = 16;
  std::vector<std::string> targets = {"all-linear"};
  double dropout = 0;
  bool rslora = false;
  std::string init = {};  // "": a random start

  bool operator==(const LoraConfig&) const = default;
  // What the adapter's product is multiplied with.
  [[nodiscard]] double factor() const;

  using S = LoraConfig;
  static void schema(auto& field) {
    field.section("lora",
                  "Low-rank adapters (LoRA, arXiv:2106.09685): the model stays as it is, and each "
                  "target matrix gets two small matrices that are trained.");
    field("rank", &S::rank, "Rank of the adapters. 0: none; the model itself is trained.",
          between(0, 1 << 16));
    field("alpha", &S::alpha,
          "An adapter's output is multiplied by alpha / rank, or with rslora by alpha / "
          "sqrt(rank).",
          positive);
    field("targets", &S::targets,
          "The matrices that get an adapter, by the end of their name, such as \"q_proj\" or "
          "\"mlp.down_proj\", as in PEFT's target_modules. \"all-linear\": all matrices of the "
          "blocks.");
    field("dropout", &S::dropout,
          "Probability with which an adapter's input is replaced by 0 in training; the rest is "
          "scaled up. The random numbers follow from train.seed, the layer and the sample's place "
          "in the run, whatever the number of ranks. Validation, --evaluate and --generate drop "
          "nothing. CUDA graphs are not recorded.",
          at_least_and_below(0, 1));
    field(
        "init", &S::init,
        "Adapter to start from: a directory with PEFT's adapter_config.json, from which all of "
        "[lora] comes. \"\": random, from train.seed, so that the adapter's output is 0 at first.");
    field("rslora", &S::rslora, "Divide by sqrt(rank) instead of rank (arXiv:2312.03732).");
  }
};

}  // namespace gxp
