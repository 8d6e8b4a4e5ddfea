#include "lib/arch/make_block.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/arch/place.h"

namespace gxp {
namespace {

class BlockMaker {
 public:
  BlockMaker(const Family& family, const ModelConfig& config, const DecoderOptions& options,
             Decoder& decoder)
      : names_(family.names),
        config_(config),
        options_(options),
        d_(decoder),
        c_(decoder.hidden),
        q_(decoder.query_channels()),
        kv_(decoder.key_channels()) {}

  UnitSpec make(int layer) {
    unit_ = {.name = fmt::format(fmt::runtime(names_.unit), layer), .kind = UnitKind::kBlock};
    prefix_ = fmt::format(fmt::runtime(names_.block), layer);
    codes_ = 0;
    adapted_.clear();
    d_.adapters.clear();
    add_tensors();
    add_adapters();
    add_saved();
    add_scratch();
    add_outputs();
    add_operands();
    return std::move(unit_);
  }

 private:
  [[nodiscard]] const DecoderKind& kind() const { return d_.kind; }
  [[nodiscard]] ActivationSpec operand(const char* name, size_t per_token) const {
    return {.name = name, .per_token = per_token, .dtype = options_.compute};
  }

  void add_vector(std::string_view name, size_t size, Initial initial) {
    unit_.tensors.push_back({prefix_ + std::string(name), {size}, initial});
  }
  void add_norm(BlockNorm norm, std::string_view name, size_t size) {
    d_.norms.set(norm, unit_.tensors.size());
    const bool from_zero = kind().norm_plus_one;
    add_vector(std::string(name) + ".weight", size, from_zero ? Initial::kZeros : Initial::kOnes);
    if (kind().norm == NormKind::kLayer)
      add_vector(std::string(name) + ".bias", size, Initial::kZeros);
  }

  struct Part {
    Matrix matrix;
    size_t outputs;
  };
  // A tensor of one matrix, or of several one after the other, with its bias.
  void add_matrices(std::string_view name, size_t inputs, const std::vector<Part>& parts, bool bias,
                    Initial initial = Initial::kNormal) {
    TensorSpec spec{.name = fmt::format("{}{}.weight", prefix_, name), .initial = initial};
    size_t outputs = 0;
    const bool is_adapted = is_target(options_.lora, prefix_ + std::string(name));
    const int adapter = is_adapted ? int(adapted_.size()) : -1;
    for (const Part& part : parts) {
      MatrixPlace& at = d_.matrices[size_t(part.matrix)];
      at = {.tensor = int(unit_.tensors.size()),
            .bias = bias ? int(unit_.tensors.size()) + 1 : -1,
            .first = outputs,
            .rows = kind().inputs_first ? inputs : part.outputs,
            .codes = codes_,
            .adapter = adapter,
            .is_first = &part == &parts.front(),
            .is_last = &part == &parts.back()};
      codes_ += kept_code_bytes(inputs * part.outputs);
      outputs += part.outputs;
      if (parts.size() > 1) spec.parts.push_back(part.outputs);
    }
    if (is_adapted) adapted_.push_back({std::string(name), inputs, outputs});
    spec.shape = kind().inputs_first ? std::vector{inputs, outputs} : std::vector{outputs, inputs};
    unit_.tensors.push_back(std::move(spec));
    if (bias) add_vector(std::string(name) + ".bias", outputs, Initial::kZeros);
  }

  // Behind all tensors of the model.
  void add_adapters() {
    const auto rank = size_t(options_.lora.rank);
    for (const auto& [name, inputs, outputs] : adapted_) {
      const std::string path = "base_model.model." + prefix_ + name;
      d_.adapters.push_back({int(unit_.tensors.size()), int(unit_.tensors.size()) + 1});
      unit_.tensors.push_back({.name = path + ".lora_A.weight",
                               .shape = {rank, inputs},
                               .initial = Initial::kUniform,
                               .adapter = true});
      unit_.tensors.push_back({.name = path + ".lora_B.weight",
                               .shape = {outputs, rank},
                               .initial = Initial::kZeros,
                               .adapter = true});
    }
  }

  void add_tensors() {
    if (kind().norm_before) add_norm(BlockNorm::kBefore1, names_.before_1, c_);
    add_attention();
    if (kind().norm_after) add_norm(BlockNorm::kAfter1, names_.after_1, c_);
    if (kind().norm_before && !kind().one_norm) add_norm(BlockNorm::kBefore2, names_.before_2, c_);
    add_mlp();
    if (kind().norm_after) add_norm(BlockNorm::kAfter2, names_.after_2, c_);
  }

  void add_attention() {
    const bool bias = config_.has_attention_bias();
    if (d_.has_one_qkv()) {
      add_matrices(names_.qkv, c_, {{Matrix::kQkv, q_ + 2 * kv_}}, bias);
    } else if (kind().qkv == QkvTensors::kParts) {
      add_matrices(names_.qkv, c_,
                   {{Matrix::kQuery, q_}, {Matrix::kKey, kv_}, {Matrix::kValue, kv_}}, false);
    } else {
      add_matrices(names_.query, c_, {{Matrix::kQuery, q_}}, bias);
      add_matrices(names_.key, c_, {{Matrix::kKey, kv_}}, bias);
      add_matrices(names_.value, c_, {{Matrix::kValue, kv_}}, bias);
    }
    if (kind().query_key_norm != QueryKeyNorm::kNone) {
      const bool all = kind().query_key_norm == QueryKeyNorm::kAllHeads;
      add_norm(BlockNorm::kQuery, names_.query_norm, all ? q_ : d_.head_size);
      add_norm(BlockNorm::kKey, names_.key_norm, all ? kv_ : d_.head_size);
    }
    add_matrices(names_.output, q_, {{Matrix::kOutput, c_}}, bias && kind().output_bias,
                 Initial::kResidualNormal);
  }

  void add_mlp() {
    const bool bias = config_.has_mlp_bias();
    const size_t m = d_.mlp;
    if (kind().fused_gate_up) {
      add_matrices(names_.gate_up, c_, {{Matrix::kGate, m}, {Matrix::kUp, m}}, false);
    } else {
      if (kind().gated) add_matrices(names_.gate, c_, {{Matrix::kGate, m}}, bias);
      add_matrices(names_.up, c_, {{Matrix::kUp, m}}, bias);
    }
    add_matrices(names_.down, m, {{Matrix::kDown, c_}}, bias, Initial::kResidualNormal);
    const MatrixPlace& down = d_.matrix(Matrix::kDown);
    unit_.tensors[size_t(down.tensor)].input =
        d_.is_fused_gelu() ? ProductInput::kGelu : ProductInput::kActivated;
    if (kind().norm_after) return;
    unit_.output_parameters = unit_.tensors[size_t(down.tensor)].count();
    if (down.bias >= 0) unit_.output_parameters += unit_.tensors[size_t(down.bias)].count();
  }

  void add_saved() {
    using enum BlockSaved;
    const auto add = [&](BlockSaved what, ActivationSpec spec) {
      place(unit_.saved, d_.saved, what, std::move(spec));
    };
    const bool has_means = kind().norm == NormKind::kLayer;
    if (kind().norm_before && has_means) add(kMean1, {"mean_1", 1});
    if (kind().norm_before) add(kRstd1, {"rstd_1", 1});
    add_saved_heads();
    add(kAttention, operand("attention", q_));
    add(kLse, {"lse", d_.heads});
    for (const BlockSaved costly : {kAttention, kLse}) unit_.saved[d_.saved[costly]].costly = true;
    if (kind().norm_after) {
      add(kAttentionOut, {"attention_out", c_});
      add(kAttentionOutRstd, {"attention_out_rstd", 1});
    }
    if (!kind().parallel) add(kResidual, {"residual", c_});
    if (kind().norm_before && !kind().one_norm) {
      if (has_means) add(kMean2, {"mean_2", 1});
      add(kRstd2, {"rstd_2", 1});
    }
    if (kind().gated) add(kGate, operand("gate", d_.mlp));
    add(kUp, operand(kind().gated ? "up" : "fc", d_.mlp));
    if (!kind().norm_after) return;
    add(kMlpOut, {"mlp_out", c_});
    add(kMlpOutRstd, {"mlp_out_rstd", 1});
  }

  void add_saved_heads() {
    using enum BlockSaved;
    const auto add = [&](BlockSaved what, ActivationSpec spec) {
      place(unit_.saved, d_.saved, what, std::move(spec));
    };
    if (d_.has_one_qkv()) {
      add(kQkv, operand("qkv", q_ + 2 * kv_));
      return;
    }
    if (kind().query_key_norm != QueryKeyNorm::kNone) {
      const bool per_head = kind().query_key_norm == QueryKeyNorm::kPerHead;
      const size_t query_rows = per_head ? d_.heads : 1;
      const size_t key_rows = per_head ? d_.kv_heads : 1;
      add(kRawQuery, {"raw_query", q_});
      add(kRawKey, {"raw_key", kv_});
      if (kind().norm == NormKind::kLayer) {
        add(kQueryMean, {"query_mean", query_rows});
        add(kKeyMean, {"key_mean", key_rows});
      }
      add(kQueryRstd, {"query_rstd", query_rows});
      add(kKeyRstd, {"key_rstd", key_rows});
    }
    add(kQuery, operand("query", q_));
    add(kKey, operand("key", kv_));
    add(kValue, operand("value", kv_));
  }

  void add_everywhere(BlockScratch what, const ActivationSpec& spec) {
    place(unit_.forward_scratch, d_.forward_scratch, what, spec);
    place(unit_.recompute_scratch, d_.recompute_scratch, what, spec);
    place(unit_.backward_scratch, d_.backward_scratch, what, spec);
  }
  [[nodiscard]] size_t widest_adapted() const {
    size_t inputs = 0;
    for (const auto& adapted : adapted_) inputs = std::max(inputs, adapted.inputs);
    return inputs;
  }

  void add_scratch() {
    using enum BlockScratch;
    if (!d_.adapters.empty()) {
      add_everywhere(kAdapted, operand("adapted", d_.adapter_rank));
      if (d_.adapter_dropout > 0) add_everywhere(kDropped, operand("dropped", widest_adapted()));
      place(unit_.backward_scratch, d_.backward_scratch, kAdaptedGradient,
            operand("adapted_gradient", d_.adapter_rank));
    }
    if (!d_.adds_directly()) {
      place(unit_.forward_scratch, d_.forward_scratch, kBranch, {"branch", c_});
      place(unit_.recompute_scratch, d_.recompute_scratch, kBranch, {"branch", c_});
    }
    const auto add = [&](BlockScratch what, ActivationSpec spec) {
      place(unit_.backward_scratch, d_.backward_scratch, what, std::move(spec));
    };
    add(kHiddenGradient, operand("hidden_gradient", d_.mlp));
    if (d_.has_one_qkv()) {
      add(kQkvGradient, operand("qkv_gradient", q_ + 2 * kv_));
    } else {
      add(kQueryGradient, operand("query_gradient", q_));
      add(kKeyGradient, operand("key_gradient", kv_));
      add(kValueGradient, operand("value_gradient", kv_));
      add(kAttentionGradient, operand("attention_gradient", q_));
    }
    if (kind().query_key_norm != QueryKeyNorm::kNone) {
      add(kRawQueryGradient, {"raw_query_gradient", q_});
      add(kRawKeyGradient, {"raw_key_gradient", kv_});
    }
    add(kBranchGradient, operand("branch_gradient", c_));
    add(kRowSums, {"row_sums", d_.heads});
    if (kind().norm_after) add(kOutputGradient, {"output_gradient", c_});
    if (options_.compute != DType::kF32 || !d_.differentiates_directly())
      add(kRoundedGradient, operand("rounded_gradient", c_));
  }

  // The outputs of the norms and of the activation function: what is kept goes to `saved`; else
  // that of the activation function to the scratch of the passes that make it, and room for one of
  // the norms' to the end of each scratch list.
  void add_outputs() {
    using enum BlockSaved;
    const ActivationSpec activated = operand("activated", d_.mlp);
    if (options_.kept != KeptOutputs::kAll) {
      place(unit_.forward_scratch, d_.forward_scratch, BlockScratch::kActivated, activated);
      if (kind().norm_after)
        place(unit_.recompute_scratch, d_.recompute_scratch, BlockScratch::kActivated, activated);
    }
    if (options_.kept == KeptOutputs::kNone) {
      for (auto* list : {&unit_.forward_scratch, &unit_.recompute_scratch, &unit_.backward_scratch})
        list->push_back(operand("normed", c_));
      return;
    }
    place(unit_.saved, d_.saved, kNormed1, operand("normed_1", c_));
    if (!kind().one_norm) place(unit_.saved, d_.saved, kNormed2, operand("normed_2", c_));
    if (options_.kept == KeptOutputs::kAll)
      place(unit_.saved, d_.saved, BlockSaved::kActivated, activated);
  }

  void add_operands() {
    using enum BlockOperand;
    const auto add = [&](std::initializer_list<BlockOperand> operands) {
      for (const BlockOperand operand : operands) d_.operands.set(operand, unit_.operands++);
    };
    add({kNormed1, kAttention, kNormed2, kActivated, kMlpGradient});
    if (!kind().gated) add({kHiddenGradient});
    add({kActivatedAgain});
    if (kind().gated) add({kGateGradient, kUpGradient});
    add({kAttentionGradient});
    if (d_.has_one_qkv())
      add({kQkvGradient});
    else
      add({kQueryGradient, kKeyGradient, kValueGradient});
  }

  const DecoderNames& names_;
  const ModelConfig& config_;
  const DecoderOptions& options_;
  Decoder& d_;
  const size_t c_, q_, kv_;
  UnitSpec unit_;
  std::string prefix_;
  size_t codes_ = 0;
  struct Adapted {
    std::string name;
    size_t inputs, outputs;
  };
  std::vector<Adapted> adapted_;
};

}  // namespace

bool is_target(const LoraConfig& lora, const std::string& path) {
  return lora.rank > 0 && std::ranges::any_of(lora.targets, [&](const std::string& target) {
           return target == "all-linear" || path == target || path.ends_with("." + target);
         });
}

UnitSpec make_block(const Family& family, const ModelConfig& config, const DecoderOptions& options,
                    int layer, Decoder& decoder) {
  return BlockMaker(family, config, options, decoder).make(layer);
}

}  // namespace gxp
