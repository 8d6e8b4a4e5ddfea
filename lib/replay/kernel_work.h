// The kernels of a step on a GPU: what each operation of a step program has the CUDA backend
// compute, as amounts of work. Pure.
//
// It follows lib/model and kernels/cuda call by call: which tensors a kernel reads and writes,
// which passes are recomputed, which conversions products need. Only 16-bit parameters; GELUs and
// biases' gradients are taken to be in the epilogues of products. FLOPs are those of flops_of(), so
// a sum over all kernels is the program's.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "kernels/ops_call.h"
#include "lib/program/run_plan.h"

namespace gxp {

enum class KernelClass {
  kForwardProducts,
  kInputProducts,   // gradients of inputs
  kWeightProducts,  // gradients of weights
  kHeadProducts,    // logits, and both gradients
  kAttention,
  kAttentionBackward,
  kRecomputation,  // all of the recompute operations
  kNorms,
  kNormsAgain,  // outputs that forward did not keep
  kNormsBackward,
  kActivations,  // GELU and SwiGLU in passes of their own, forward, again or backward
  kBiasGradients,
  kConversions,  // of the residual stream's gradient, f32, for products
  kRotations,
  kClassifier,
  kEnds,       // embedding, final norm, cleared gradients
  kGradients,  // sums over micro-batches, the norm, clipping
  kUpdate,     // the optimizer, rounded parameters
};
inline constexpr std::array<std::string_view, 18> kKernelClassNames = {
    "forward products",
    "products for inputs' gradients",
    "products for weights' gradients",
    "products of the head",
    "attention",
    "attention backward",
    "recomputation",
    "norms",
    "norms made again",
    "norms backward",
    "activation functions",
    "biases' gradients",
    "stream's gradient to 16 bits",
    "rotary positions",
    "classifier",
    "embedding and final norm",
    "sums and norm of gradients",
    "optimizer and rounding"};

// One kernel, or several that are alike.
struct KernelWork {
  KernelClass of = KernelClass::kNorms;
  OpsCall call = OpsCall::kPass;
  enum class Engine {
    kProduct,
    kProduct8,  // of operands of 8 bits
    kAttention,
    kAttentionBackward,
    kMemory
  } engine = Engine::kMemory;
  double flops = 0;
  double bytes = 0;         // read and written in the GPU's memory
  double narrow = 0;        // of a product: 1 / M + 1 / N + 1 / K
  double instructions = 0;  // of all lanes, where they may be the limit
  double launches = 1;
};

// The class of what is called in an operation of the program: in predictions, and in measurements
// (train/timed_ops.h).
KernelClass class_of(OpKind kind, OpsCall call);

// For an operation of the compute lane; other lanes' have none. Cost: some us.
std::vector<KernelWork> kernels_of(const RunPlan& plan, const Op& op);

}  // namespace gxp
