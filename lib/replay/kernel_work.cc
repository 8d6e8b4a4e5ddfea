#include "lib/replay/kernel_work.h"

#include <algorithm>
#include <array>

#include "lib/program/run_plan.h"
#include "lib/replay/step_time.h"
#include "lib/replay/unit_work.h"

namespace gxp {
namespace {

using enum OpsCall;
using Engine = KernelWork::Engine;

constexpr double kStream = sizeof(float);  // bytes of an element of the residual stream
// Instructions of a lane for an element, read in the machine code (sm_90a): GELU and its slope; a
// logit in the two passes of the classifier.
constexpr double kGeluInstructions = 25;
constexpr double kLogitInstructions = 27;
// Of a parameter whose moments are 8-bit codes; counted in PTX, a division as 10.
constexpr double kCodeInstructions = 160;

using Works = std::vector<KernelWork>;

// out(M, N) = a(M, K) b(K, N).
struct ProductSize {
  double m, n, k;
};

// Of operands with `element` bytes an element, and `out_element` of the result.
KernelWork product(OpsCall call, const ProductSize& size, double element, double out_element) {
  const auto [m, n, k] = size;
  return {.call = call,
          .engine = Engine::kProduct,
          .flops = 2 * m * n * k,
          .bytes = element * (m * k + k * n) + out_element * m * n,
          .narrow = 1 / m + 1 / n + 1 / k};
}

KernelWork pass(OpsCall call, double bytes, double instructions = 0) {
  return {.call = call, .bytes = bytes, .instructions = instructions};
}

// Of a block.
KernelWork block_product(const UnitWork& unit, OpsCall call, const ProductSize& size,
                         double out_element) {
  if (!unit.float8) return product(call, size, unit.element, out_element);
  KernelWork work = product(call, size, 1, out_element);
  work.engine = Engine::kProduct8;
  return work;
}

enum class CodeLayouts { kOne = 1, kBoth = 2 };  // as stored or transposed

// The codes of an operand of so many elements, whose largest value is known.
void add_codes(Works& works, const UnitWork& unit, OpsCall call, double elements,
               CodeLayouts layouts = CodeLayouts::kOne) {
  if (unit.float8) works.push_back(pass(call, elements * (unit.element + double(layouts))));
}

// The codes of a matrix of parameters, which is also read for its largest value.
void add_weight_codes(Works& works, const UnitWork& unit, OpsCall call, const LinearWork& linear,
                      bool is_first = false) {
  if (!unit.float8 || (unit.keeps_codes && !is_first)) return;
  const double elements = linear.inputs * linear.outputs;
  works.push_back(pass(call, elements * (2 * unit.element + (unit.keeps_codes ? 2 : 1))));
  works.back().launches = 3;
}

// FLOPs of the norms' parameters as flops_of() counts them: as if they were multiplied.
double vector_flops(const UnitWork& unit) {
  double count = 0;
  for (const TensorSpec* vector : unit.vectors) count += double(vector->count());
  return 2 * unit.tokens * count;
}

// The number of the norms' parameters that are trained.
double trained_elements(const UnitWork& unit) {
  double count = 0;
  for (const TensorSpec* vector : unit.vectors)
    count += vector->frozen ? 0 : double(vector->count());
  return count;
}

double attention_flops(const UnitWork& unit) {
  return unit.tokens * 2 * unit.queries * unit.positions;
}

// A pass over what another library's kernel has written, for its largest value.
void add_largest(Works& works, const UnitWork& unit, OpsCall call, double elements) {
  if (unit.float8) works.push_back(pass(call, elements * unit.element));
}

// `is_first`: the first forward pass of the step.
void add_forward_product(Works& works, const UnitWork& unit, const LinearWork& linear,
                         bool is_first) {
  add_codes(works, unit, kProduct, unit.tokens * linear.inputs);
  add_weight_codes(works, unit, kProduct, linear, is_first);
  // The stream is read as well, and its sum written in f32.
  const double out = linear.writes_stream() ? 2 * kStream : unit.element;
  KernelWork work =
      block_product(unit, kProduct, {unit.tokens, linear.outputs, linear.inputs}, out);
  if (linear.bias != nullptr) work.flops += 2 * unit.tokens * linear.outputs;
  works.push_back(work);
}

// The products with the adapters' matrices, once in a forward pass and twice in a backward pass, and
// the dropout of what the first ones, of `rank` rows, read.
void add_adapters(Works& works, const UnitWork& unit, double times) {
  const Decoder& decoder = unit.architecture.decoder;
  for (const TensorSpec* adapter : unit.adapters) {
    const auto rows = double(adapter->shape[0]), columns = double(adapter->shape[1]);
    if (decoder.adapter_dropout > 0 && adapter->shape[0] == decoder.adapter_rank)
      works.push_back(pass(kPass, times * 2 * unit.tokens * columns * unit.element));
    works.push_back(product(kProduct, {unit.tokens, rows, columns}, unit.element, unit.element));
    works.back().flops *= times;
    works.back().bytes *= times;
    works.back().launches *= times;
  }
}

// A block's forward pass up to its last product, which makes its saved activations; with attention
// or without.
void add_saved(Works& works, const UnitWork& unit, bool attends, bool is_first) {
  const double n = unit.tokens;
  for (int norm = 0; norm < 2; ++norm) {
    works.push_back(pass(kNorm, n * unit.hidden * (kStream + unit.element)));
    works.back().flops = vector_flops(unit) / 2;
  }
  for (const LinearWork& linear : unit.linears) {
    if (unit.is_last(linear)) continue;
    add_forward_product(works, unit, linear, is_first);
    // The fused product before the last stores the GELU as well as its argument; in 8 bits a pass
    // makes it.
    const bool of_gelu = !unit.gated && unit.is_last(*(&linear + 1));
    if (of_gelu && unit.float8)
      works.push_back(pass(kProduct, 2 * n * linear.outputs * unit.element,
                           kGeluInstructions * n * linear.outputs));
    else if (of_gelu)
      works.back().bytes += n * linear.outputs * unit.element;
  }
  if (unit.rotates)
    for (const double channels : {unit.queries, unit.keys})
      works.push_back(pass(kRotation, 2 * n * channels * unit.element));
  if (!attends) return;
  works.push_back({.call = kAttention,
                   .engine = Engine::kAttention,
                   .flops = attention_flops(unit),
                   .bytes = n * unit.element * 2 * (unit.queries + unit.keys)});
  add_largest(works, unit, kAttention, n * unit.queries);
}

// A SwiGLU's output.
void add_gate(Works& works, const UnitWork& unit) {
  if (!unit.gated) return;
  works.push_back(pass(kActivation, 3 * unit.tokens * unit.last().inputs * unit.element));
}

void add_forward(Works& works, const UnitWork& unit, const Op& op) {
  const double n = unit.tokens;
  if (unit.spec.kind == UnitKind::kEmbedding) {
    works.push_back(pass(kEmbedding, n * unit.hidden * (unit.element + kStream)));
    return;
  }
  if (unit.float8) works.push_back(pass(kPass, 0));  // clears the places of largest values
  const bool is_first = op.micro == 0;
  add_saved(works, unit, true, is_first);
  add_gate(works, unit);
  add_forward_product(works, unit, unit.last(), is_first);
  add_adapters(works, unit, 1);
}

void add_recompute(Works& works, const UnitWork& unit, const Op& op) {
  add_saved(works, unit, op.buffers.recompute == Recompute::kFull, false);
  if (unit.architecture.kept == KeptOutputs::kAll) add_gate(works, unit);
  add_adapters(works, unit, 1);
}

// The backward pass of one product: dx, and dW and the bias's gradient unless they are frozen. The
// bias's gradient is summed in dW's product, or by the pass that completes the stream's gradient.
void add_backward_product(Works& works, const UnitWork& unit, const LinearWork& linear,
                          bool accumulates) {
  const double n = unit.tokens;
  const double bias_flops = linear.bias != nullptr ? 2 * n * linear.outputs : 0;
  // A SwiGLU lies between the two products with dout: each makes its codes, else one makes both.
  const bool is_apart = unit.gated && unit.is_last(linear);
  const bool trains = !linear.weight->frozen;
  add_codes(works, unit, kProduct, n * linear.outputs,
            trains && !is_apart ? CodeLayouts::kBoth : CodeLayouts::kOne);
  add_weight_codes(works, unit, kProduct, linear);
  works.push_back(block_product(unit, kProduct, {n, linear.inputs, linear.outputs}, unit.element));
  works.back().flops += bias_flops;
  if (trains) {
    const double out = kStream * (accumulates ? 2 : 1);
    if (is_apart) add_codes(works, unit, kWeightProduct, n * linear.outputs);
    add_codes(works, unit, kWeightProduct, n * linear.inputs);
    works.push_back(block_product(unit, kWeightProduct, {linear.outputs, linear.inputs, n}, out));
  }
  if (linear.bias == nullptr || linear.bias->frozen) return;
  if ((linear.weight->frozen || unit.float8) && !linear.writes_stream())
    works.push_back(pass(linear.weight->frozen ? kBiasSums : kWeightProduct,
                         n * linear.outputs * unit.element));
  works.back().flops += bias_flops;
}

// The passes before or after the product's backward: activation functions, and for the last layer
// the pass that rounds the stream's gradient and sums it for the bias. For attention's layer, the
// norm's backward does both.
void add_around_backward(Works& works, const UnitWork& unit, const LinearWork& linear) {
  const double n = unit.tokens;
  const double inputs = n * linear.inputs;
  if (!unit.is_last(linear)) return;
  works.push_back(pass(kStreamOutputs, n * unit.hidden * (kStream + unit.element)));
  const bool is_kept = unit.architecture.kept == KeptOutputs::kAll;
  if (unit.gated)
    works.push_back(pass(kActivation, (is_kept ? 5 : 6) * inputs * unit.element));
  else if (unit.float8)
    works.push_back(
        pass(kActivation, (is_kept ? 3 : 4) * inputs * unit.element, kGeluInstructions * inputs));
  else if (!is_kept)
    works.push_back(pass(kActivation, 2 * inputs * unit.element, kGeluInstructions * inputs));
}

void add_norms_backward(Works& works, const UnitWork& unit) {
  const double n = unit.tokens;
  for (int norm = 0; norm < 2; ++norm) {
    if (unit.architecture.kept == KeptOutputs::kNone)
      works.push_back(pass(kNormAgain, n * unit.hidden * (kStream + unit.element)));
    // The second norm's backward also stores the stream's gradient rounded.
    const double rounded = norm == 1 ? unit.element : 0;
    works.push_back(pass(kNormBackward, n * unit.hidden * (3 * kStream + unit.element + rounded)));
    works.back().flops = (vector_flops(unit) + 2 * n * trained_elements(unit)) / 2;
    works.back().launches = 2;  // partial sums of the parameters' gradients
  }
}

void add_backward(Works& works, const UnitWork& unit, const Op& op) {
  const double n = unit.tokens;
  if (unit.spec.kind == UnitKind::kEmbedding) {
    // Each token's row is read and added to; sorting the tokens takes a few small kernels.
    works.push_back(pass(kEmbedding, 3 * n * unit.hidden * kStream));
    works.back().launches = 6;
    return;
  }
  for (const LinearWork& linear : unit.linears) {
    add_around_backward(works, unit, linear);
    add_backward_product(works, unit, linear, op.gradients.accumulate);
  }
  // Reads what forward has, its output and that gradient; writes three gradients.
  works.push_back({.call = kAttentionBackward,
                   .engine = Engine::kAttentionBackward,
                   .flops = 2 * attention_flops(unit),
                   .bytes = 4 * n * unit.element * (unit.queries + unit.keys),
                   .launches = 3});
  // The rotation finds the largest value of rotated queries and keys.
  add_largest(works, unit, kAttentionBackward, n * (unit.gated ? unit.keys : 3 * unit.queries));
  if (unit.rotates)
    for (const double channels : {unit.queries, unit.keys})
      works.push_back(pass(kRotation, 2 * n * channels * unit.element));
  add_adapters(works, unit, 2);
  add_norms_backward(works, unit);
}

// The head's forward and backward, the logits in pieces.
void add_loss(Works& works, const RunPlan& plan, const UnitWork& unit, const Op& op) {
  const Architecture& architecture = plan.architecture;
  const bool borrows = unit.spec.borrows_from >= 0;
  const TensorSpec& matrix = borrows ? architecture.units[size_t(unit.spec.borrows_from)].tensors[0]
                                     : unit.spec.tensors.back();
  const double vocabulary = double(matrix.shape[0]);
  const double n = unit.tokens;
  const size_t most =
      std::ranges::find(unit.spec.backward_scratch, "logits", &ActivationSpec::name)->most_tokens;
  const double piece = std::min(n, double(most));
  const double pieces = n / piece;
  works.push_back(pass(kNorm, n * unit.hidden * (kStream + unit.element)));
  works.back().flops = vector_flops(unit);
  const auto add_product = [&](KernelWork work) {
    work.flops *= pieces;
    work.bytes *= pieces;
    work.launches *= pieces;
    works.push_back(work);
  };
  add_product(product(kProduct, {piece, vocabulary, unit.hidden}, unit.element, unit.element));
  works.push_back(
      pass(kClassifier, 2 * n * vocabulary * unit.element, kLogitInstructions * n * vocabulary));
  works.back().launches = pieces;
  add_product(product(kProduct, {piece, unit.hidden, vocabulary}, unit.element, unit.element));
  if (!matrix.frozen) {
    const bool adds = op.gradients.accumulate || pieces > 1;
    add_product(product(kWeightProduct, {vocabulary, unit.hidden, piece}, unit.element,
                        kStream * (adds ? 2 : 1)));
  }
  works.push_back(pass(kPass, n * unit.hidden * kStream));  // the cleared stream's gradient
  works.push_back(pass(kNormBackward, n * unit.hidden * (3 * kStream + unit.element)));
  works.back().flops = vector_flops(unit) + 2 * n * trained_elements(unit);
}

// The class of a call's kernels in a unit of the model, where that is the head and elsewhere.
struct ClassRow {
  OpsCall call;
  KernelClass in_head;
  KernelClass elsewhere;
};
constexpr std::array kClasses = {
    ClassRow{kProduct, KernelClass::kHeadProducts, KernelClass::kInputProducts},
    ClassRow{kWeightProduct, KernelClass::kHeadProducts, KernelClass::kWeightProducts},
    ClassRow{kBiasSums, KernelClass::kBiasGradients, KernelClass::kBiasGradients},
    ClassRow{kStreamOutputs, KernelClass::kConversions, KernelClass::kConversions},
    ClassRow{kNorm, KernelClass::kEnds, KernelClass::kNorms},
    ClassRow{kNormAgain, KernelClass::kNormsAgain, KernelClass::kNormsAgain},
    ClassRow{kNormBackward, KernelClass::kEnds, KernelClass::kNormsBackward},
    ClassRow{kActivation, KernelClass::kActivations, KernelClass::kActivations},
    ClassRow{kRotation, KernelClass::kRotations, KernelClass::kRotations},
    ClassRow{kAttention, KernelClass::kAttention, KernelClass::kAttention},
    ClassRow{kAttentionBackward, KernelClass::kAttentionBackward, KernelClass::kAttentionBackward},
    ClassRow{kEmbedding, KernelClass::kEnds, KernelClass::kEnds},
    ClassRow{kClassifier, KernelClass::kClassifier, KernelClass::kClassifier},
    ClassRow{kPass, KernelClass::kEnds, KernelClass::kEnds},
};

constexpr bool are_by_call() {
  for (size_t i = 0; i < kClasses.size(); ++i)
    if (size_t(kClasses[i].call) != i) return false;
  return kClasses.size() == size_t(kPass) + 1;
}
static_assert(are_by_call());

KernelClass class_in_unit(OpKind kind, OpsCall call) {
  if (kind == OpKind::kForward && call == kProduct) return KernelClass::kForwardProducts;
  const ClassRow& row = kClasses[size_t(call)];
  return kind == OpKind::kForward || kind == OpKind::kBackward ? row.elsewhere : row.in_head;
}

}  // namespace

KernelClass class_of(OpKind kind, OpsCall call) {
  if (kind == OpKind::kRecompute) return KernelClass::kRecomputation;
  if (kind == OpKind::kNextBatch || kind == OpKind::kReduceLoss) return KernelClass::kEnds;
  switch (row_of(kind).part) {
    case OpPart::kForwardBackward:
    case OpPart::kEvaluation:
      return class_in_unit(kind, call);
    case OpPart::kGradients:
    case OpPart::kClipping:
      return KernelClass::kGradients;
    case OpPart::kParameters:
    case OpPart::kWeightUpdate:
    case OpPart::kOffload:
      return KernelClass::kUpdate;
  }
  return KernelClass::kUpdate;
}

std::vector<KernelWork> kernels_of(const RunPlan& plan, const Op& op) {
  Works works;
  if (op.lane != Lane::kCompute) return works;
  const auto unit = [&] { return UnitWork(plan, op.unit); };
  const double bytes = traffic_bytes(plan.step.program, op);
  switch (op.kind) {
    case OpKind::kForward:
      add_forward(works, unit(), op);
      break;
    case OpKind::kRecompute:
      add_recompute(works, unit(), op);
      break;
    case OpKind::kBackward:
      add_backward(works, unit(), op);
      break;
    case OpKind::kLoss:
      add_loss(works, plan, unit(), op);
      break;
    case OpKind::kUpdate: {
      const bool has_codes = block_of(plan.shape.optimizer) > 1;
      works.push_back(
          pass(kPass, bytes, has_codes ? kCodeInstructions * double(op.update.elements.count) : 0));
      break;
    }
    default:
      works.push_back(pass(kPass, bytes));
      break;
  }
  for (KernelWork& work : works) work.of = class_of(op.kind, work.call);
  return works;
}

}  // namespace gxp
