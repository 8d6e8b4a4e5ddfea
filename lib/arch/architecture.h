// A model as a table: units in forward order, their tensors, the activations that each
// keeps for its backward pass, and the arithmetic per token. Pure: no memory, no device.
//
// The step program, the memory plan, checkpoints and the model's code all read this table, so none
// of them can disagree with another about a name, a shape or a byte. Which families there are is
// family.h's matter.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "lib/arch/decoder.h"
#include "lib/arch/lora_config.h"
#include "lib/arch/model_config.h"
#include "lib/base/dtype.h"

namespace gxp {

// How a tensor starts when the model is not loaded. GPT-2's scheme (Radford et al., 2019,
// section 2.3): projections back into the residual stream are scaled by 1 / sqrt(2 * layers).
// kUniform: between -1 / sqrt(inputs) and that, as PEFT's adapters.
enum class Initial { kNormal, kResidualNormal, kZeros, kOnes, kUniform };

// What makes the input of a block matrix's product, as far as the scratch memory of the backward
// pass on a GPU depends on it (kernels/product_scratch.h).
enum class ProductInput {
  kStored,
  kGelu,       // a GELU fused into the products before and after it (Ops::linear_gelu)
  kActivated,  // an activation function's output, whose backward comes between the two of this
};

struct TensorSpec {
  std::string name;  // Hugging Face's name, e.g. "transformer.h.0.attn.c_attn.weight"
  std::vector<size_t> shape = {};
  Initial initial = Initial::kNormal;
  ProductInput input = ProductInput::kStored;
  std::vector<size_t> parts = {};  // rows of the matrices that are stored as one; none: all rows
  bool frozen = false;             // read and not trained: freeze()
  bool adapter = false;            // of LoRA: not of the model

  [[nodiscard]] size_t count() const;
  [[nodiscard]] size_t kept_code_bytes() const;  // of a matrix
  // Weight decay takes matrices and embeddings; norms and biases only with optim.decay_vectors.
  [[nodiscard]] bool decays() const { return shape.size() >= 2; }
};

// Memory of one unit's forward or backward pass, proportional to the tokens of a micro-batch.
struct ActivationSpec {
  std::string name;
  size_t per_token = 0;                                     // elements
  size_t most_tokens = std::numeric_limits<size_t>::max();  // processed in pieces of so many
  DType dtype = DType::kF32;
  bool costly = false;  // if saved: costs more per byte to recompute than others (recompute.h)

  [[nodiscard]] size_t count(size_t tokens) const {
    return per_token * (tokens < most_tokens ? tokens : most_tokens);
  }
};

enum class UnitKind { kEmbedding, kBlock, kHead };

// Which operands of a block's products forward keeps for backward although one pass over memory
// would make them again. kNorms: the norms' outputs, to the same bits. kAll: the activation
// function's output as well. With 16-bit types a GPU's fused product makes a GELU's from x before
// rounding (LinearGelu in kernels/ops.h), so that made again it may have other bits.
enum class KeptOutputs { kNone, kNorms, kAll };

// Parameters that are needed, gathered and freed together. The order of `tensors`, `saved` and the
// scratch lists is Decoder's, by which the model's code indexes them.
struct UnitSpec {
  std::string name;  // "embedding", "h.0", "head"
  UnitKind kind = UnitKind::kBlock;
  std::vector<TensorSpec> tensors = {};
  int borrows_from = -1;  // a tied head reads (and adds gradients to) the first tensor of that unit
  std::vector<ActivationSpec> saved = {};              // written by forward, read by backward
  std::vector<ActivationSpec> forward_scratch = {};    // live during the unit's forward only
  std::vector<ActivationSpec> recompute_scratch = {};  // live while `saved` is recomputed
  std::vector<ActivationSpec> backward_scratch =
      {};  // live during its backward (the head: its loss) only
  // Tensors that a block's products multiply besides parameters (BlockOperand): where products are
  // in 8 bits, each has a place for its largest |x| (Tensor::largest).
  size_t operands = 0;
  // The parameters of the last product, which makes the unit's output and nothing of `saved`.
  size_t output_parameters = 0;

  [[nodiscard]] size_t parameter_count() const;
  [[nodiscard]] size_t trainable_count() const;
  [[nodiscard]] size_t kept_code_bytes() const;  // of all matrices
  [[nodiscard]] bool is_frozen() const { return trainable_count() == 0; }
  // The vector that is added to the matrix's product; null if there is none.
  [[nodiscard]] const TensorSpec* bias_of(const TensorSpec& matrix) const;
};

// Bytes of a matrix's codes of 8 bits, as it is stored and transposed, and of their scale, each at
// a multiple of 256. Its sizes are multiples of 16.
constexpr size_t kept_code_bytes(size_t elements) {
  return 256 + 2 * ((elements + 255) / 256 * 256);
}

struct Architecture {
  ModelConfig config;
  // The type of the parameters that are read, and of matrix products' operands and outputs; the
  // residual stream, statistics and losses are f32.
  DType compute = DType::kF32;
  bool float8 = false;  // the products of blocks round their operands to 8 bits (kernels/ops.h)
  KeptOutputs kept = KeptOutputs::kNone;
  Decoder decoder = {};
  std::vector<UnitSpec> units = {};  // forward order: embedding, blocks, head
  bool inputs_first = false;  // matrices of blocks are (inputs, outputs); else as torch.nn.Linear's
  size_t looked_up = 0;       // parameters of tables that are in no matrix product
  size_t attention_channels = 0;  // heads * head size: the width of queries and of the output

  [[nodiscard]] size_t parameter_count() const;
  // The first unit with a tensor that is not frozen; there is one.
  [[nodiscard]] int lowest_trained_unit() const;
  // Floating-point operations of forward and backward per token: 6 per parameter in a matrix
  // product (all but `looked_up`: a tied embedding counts once, as the head), and 6 * layers *
  // attention_channels * positions for attention, the causal half counted; heads that share keys
  // and values do no fewer. PaLM's convention counts twice that for attention.
  [[nodiscard]] double train_flops_per_token(size_t positions) const;
};

// The logits of a head, which works through the tokens in pieces, so that they never exist for a
// whole micro-batch: up to 16 Mi logits (64 MiB). Smaller pieces would read and write the gradient
// of the head's matrix once more each, for too few products.
ActivationSpec logits_in_pieces(size_t vocabulary, DType dtype);
// The head works through so many tokens at a time instead.
void set_logits_rows(Architecture& architecture, size_t rows);

// With adapters all other tensors are frozen; each has the name of PEFT's files. Throws kConfig if
// the family is unknown, or a target of the adapters.
Architecture make_architecture(const ModelConfig& config, DType compute = DType::kF32,
                               KeptOutputs kept = KeptOutputs::kNone, const LoraConfig& lora = {});

// Marks the tensors whose names one of the patterns (with *, ? and [...]) matches as frozen: a run
// reads them and does not train them, so they have no gradient of their own, no part in its norm,
// no optimizer state and no update. A name's "transformer." or "model."
// (Family::prefix) may be left out. Throws kConfig for a pattern that matches none, and
// if nothing is left to train.
void freeze(Architecture& architecture, const std::vector<std::string>& patterns);

// The units whose name the pattern (with *, ? and [...]) matches, in order.
std::vector<int> units_matching(const Architecture& architecture, const std::string& pattern);

}  // namespace gxp
