// What a user can set of the optimizer: the section [optim] of a run file
// (lib/config/run_config.h). A setting that not all optimizers have is declared without their
// names: the optimizers' rows (optimizers.h) say who has it, and the manual, the rules and the
// messages read it there.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/choice.h"
#include "lib/base/schema.h"

namespace gxp {

// What optim.name may be, in the order of the table (optimizers.inc).
std::vector<std::string_view> optimizer_names();
// For the manual: the defaults that depend on optim.name, and what the update rules are.
std::string_view optimizers_in_words();
std::string_view update_rules_in_words();

enum class MomentType { kFp32, kBf16, kInt8 };
constexpr std::array<std::string_view, 3> words_of(MomentType) { return {"fp32", "bf16", "int8"}; }
enum class LrAdjustment { kOriginal, kMatchRmsAdamw };
constexpr std::array<std::string_view, 2> words_of(LrAdjustment) {
  return {"original", "match_rms_adamw"};
}

struct OptimConfig {
  std::string name = "adamw";
  double lr = 6e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  Choice<MomentType> state_dtype = MomentType::kFp32;
  double weight_decay = 0.1;
  bool decay_vectors = false;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  int ns_steps = 5;
  Choice<LrAdjustment> adjust_lr = LrAdjustment::kOriginal;
  double adamw_lr_ratio = 1;
  double decay_rate = -0.8;
  double clip_threshold = 1;
  double eps1 = 1e-30;
  double clip = 1.0;  // largest global gradient norm; 0: none

  using S = OptimConfig;
  static void schema(auto& field) {
    field.section("optim", optimizers_in_words());
    field("name", &S::name, update_rules_in_words(), one_of(optimizer_names()));
    field("lr", &S::lr, "Peak learning rate.", positive);
    field("beta1", &S::beta1,
          "Decay of the first moment; lion: weight of the momentum in the step's sign.",
          at_least_and_below(0, 1));
    field("beta2", &S::beta2, "Decay of the second moment; lion: of the momentum.",
          at_least_and_below(0, 1));
    field("eps", &S::eps, "Added to the root of the second moment.", positive);
    field("state_dtype", &S::state_dtype,
          "type in which the moments are kept from step to step: 8, 4 or 2.03 bytes a parameter. "
          "bf16: rounded stochastically, since to the nearest a second moment with beta2 0.999 "
          "would never fall. int8: 8-bit codes (dynamic tree quantization, arXiv:2110.02861), with "
          "an f32 scale for each 256 elements of a tensor. The update itself is in f32. Every "
          "strategy has the same bits.");
    field("weight_decay", &S::weight_decay,
          "Weight decay on tensors of two and more dimensions: a part of the gradient for adam "
          "and sgd, decoupled for the others.",
          at_least(0));
    field("decay_vectors", &S::decay_vectors,
          "Weight decay on vectors (norms and biases) too, as with one group of all parameters in "
          "PyTorch.");
    field("momentum", &S::momentum, "decay of the momentum; sgd: 0: none.",
          at_least_and_below(0, 1));
    field("dampening", &S::dampening,
          "what is left out of the gradient that the momentum takes in.", between(0, 1));
    field("nesterov", &S::nesterov, "the step looks one momentum ahead, as Nesterov's does.");
    field("ns_steps", &S::ns_steps, "Newton-Schulz iterations.", between(1, 100));
    field("adjust_lr", &S::adjust_lr,
          "what lr is multiplied with for an (n, m) matrix. original: sqrt(max(1, n / m)); "
          "match_rms_adamw: 0.2 sqrt(max(n, m)), for AdamW's lr.");
    field("adamw_lr_ratio", &S::adamw_lr_ratio,
          "learning rate of the tensors that AdamW updates, in lr.", positive);
    field("decay_rate", &S::decay_rate, "in step t, the second moment decays by 1 - t^decay_rate.",
          between(-1, 0));
    field("clip_threshold", &S::clip_threshold,
          "the largest root mean square of a tensor's update before lr.", positive);
    field("eps1", &S::eps1, "added to squared gradients.", at_least(0));
    field("clip", &S::clip, "Largest global gradient norm; 0: no clipping.", at_least(0));
  }
};

}  // namespace gxp
