// The user's settings of the optimizer: the section [optim] of a run file
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

// The values of optim.name, in the order of the table (optimizers.inc).
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
          "Decay rate of the first moment. lion: weight of the momentum in the sign of the "
          "update.",
          at_least_and_below(0, 1));
    field("beta2", &S::beta2, "Decay rate of the second moment. lion: decay rate of the momentum.",
          at_least_and_below(0, 1));
    field("eps", &S::eps, "Added to the square root of the second moment.", positive);
    field("state_dtype", &S::state_dtype,
          "Type in which moments are stored between steps: 8 (fp32), 4 (bf16) or 2.03 (int8) "
          "bytes per parameter. The update itself is computed in f32. bf16 is rounded "
          "stochastically: rounded to nearest, a second moment with beta2 = 0.999 would never "
          "decrease. int8 is dynamic tree quantization (arXiv:2110.02861) with one f32 scale per "
          "256 elements. All strategies give the same bits.");
    field("weight_decay", &S::weight_decay,
          "Weight decay of tensors with two or more dimensions. Added to the gradient for adam "
          "and sgd, decoupled for the other optimizers.",
          at_least(0));
    field("decay_vectors", &S::decay_vectors,
          "Apply weight decay to vectors (norms and biases) as well, like PyTorch with a single "
          "parameter group.");
    field("momentum", &S::momentum, "Momentum factor. sgd: 0 means no momentum.",
          at_least_and_below(0, 1));
    field("dampening", &S::dampening,
          "Dampening of the momentum: the gradient is scaled by 1 - dampening.", between(0, 1));
    field("nesterov", &S::nesterov, "Use Nesterov momentum.");
    field("ns_steps", &S::ns_steps, "Number of Newton-Schulz iterations.", between(1, 100));
    field("adjust_lr", &S::adjust_lr,
          "Factor by which lr is scaled for an n x m matrix. original: sqrt(max(1, n / m)). "
          "match_rms_adamw: 0.2 sqrt(max(n, m)), so that a learning rate tuned for AdamW fits.");
    field("adamw_lr_ratio", &S::adamw_lr_ratio,
          "Learning rate of the tensors that AdamW updates, as a multiple of lr.", positive);
    field("decay_rate", &S::decay_rate,
          "Exponent of the second moment's decay, which is 1 - t^decay_rate in step t.",
          between(-1, 0));
    field("clip_threshold", &S::clip_threshold,
          "Largest root mean square of a tensor's update, before it is scaled by lr.", positive);
    field("eps1", &S::eps1, "Added to the squared gradient.", at_least(0));
    field("clip", &S::clip, "Gradients are clipped to this global norm. 0: no clipping.",
          at_least(0));
  }
};

}  // namespace gxp
