#include "lib/arch/make_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/arch/layer_set.h"
#include "lib/arch/make_block.h"
#include "lib/arch/place.h"
#include "lib/arch/rope_scaling.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

UnitSpec make_embedding(const DecoderNames& names, const Decoder& d) {
  UnitSpec unit{.name = "embedding", .kind = UnitKind::kEmbedding};
  unit.tensors = {{fmt::format("{}.weight", names.token_table), {d.vocabulary, d.hidden}}};
  if (d.kind.position_table)
    unit.tensors.push_back({fmt::format("{}.weight", names.position_table), {d.context, d.hidden}});
  return unit;
}

UnitSpec make_head(const DecoderNames& names, DType compute, Decoder& d) {
  using enum HeadScratch;
  UnitSpec unit{.name = "head", .kind = UnitKind::kHead};
  const auto add = [&](std::string name, std::vector<size_t> shape, Initial initial) {
    unit.tensors.push_back({std::move(name), std::move(shape), initial});
    return int(unit.tensors.size()) - 1;
  };
  const auto name = [](std::string_view module, const char* what) {
    return fmt::format("{}.{}", module, what);
  };
  const bool is_layer = d.kind.norm == NormKind::kLayer;
  d.final_norm = add(name(names.final_norm, "weight"), {d.hidden},
                     d.kind.norm_plus_one ? Initial::kZeros : Initial::kOnes);
  if (is_layer) add(name(names.final_norm, "bias"), {d.hidden}, Initial::kZeros);
  if (d.tied_head)
    unit.borrows_from = 0;
  else
    d.head_weight = add(name(names.head, "weight"), {d.vocabulary, d.hidden}, Initial::kNormal);
  if (d.kind.head_bias)
    d.head_bias = add(name(names.head, "bias"), {d.vocabulary}, Initial::kZeros);

  const ActivationSpec normed = {.name = "normed", .per_token = d.hidden, .dtype = compute};
  std::vector<ActivationSpec>& scratch = unit.forward_scratch;
  place(scratch, d.head_scratch, kNormed, normed);
  if (is_layer) place(scratch, d.head_scratch, kMean, {"mean", 1});
  place(scratch, d.head_scratch, kRstd, {"rstd", 1});
  place(scratch, d.head_scratch, kLogits, logits_in_pieces(d.vocabulary, compute));
  unit.backward_scratch = scratch;
  place(unit.backward_scratch, d.head_scratch, kNormedGradient,
        {.name = "normed_gradient", .per_token = d.hidden, .dtype = compute});
  if (d.logit_cap > 0) {
    ActivationSpec capped = logits_in_pieces(d.vocabulary, compute);
    capped.name = "capped_logits";
    place(unit.backward_scratch, d.head_scratch, kCapped, std::move(capped));
  }
  return unit;
}

std::vector<LayerKind> kinds_of_layers(const Family& family, const ModelConfig& config) {
  // A plan may ask for fewer layers than the lists name.
  const auto windowed = parse_layers(config.window_layers, kMostLayers);
  const auto unrotated = parse_layers(config.unrotated_layers, kMostLayers);
  GXP_ASSERT(windowed && unrotated);  // model_rules()
  std::vector<LayerKind> kinds(size_t(config.layers));
  for (size_t i = 0; i < kinds.size(); ++i) {
    const bool has_window = config.window > 0 && (*windowed)[i];
    double scale = config.attention_scale;
    if (config.attention_scale_by_layer) {
      if (scale == 0) scale = 1 / std::sqrt(double(config.channels_per_head()));
      scale /= double(i + 1);
    }
    kinds[i] = {.rotates = !family.kind.position_table && !(*unrotated)[i],
                .is_local = has_window && family.kind.local_rotary,
                .window = has_window ? size_t(config.window) : 0,
                .scale = float(scale)};
  }
  return kinds;
}

double rounded_to(DType dtype, double value) {
  if (dtype == DType::kBF16) return double(float(BFloat16(float(value))));
  if (dtype == DType::kF16) return double(float(Float16(float(value))));
  return value;
}

Decoder describe(const Family& family, const ModelConfig& config, DType compute) {
  Decoder d{.kind = family.kind,
            .vocabulary = size_t(config.vocab_size),
            .context = size_t(config.context),
            .hidden = size_t(config.hidden),
            .heads = size_t(config.heads),
            .kv_heads = size_t(config.kv_head_count()),
            .head_size = size_t(config.channels_per_head()),
            .mlp = size_t(config.mlp_width()),
            .activation = config.activation_used(),
            .tied_head = config.ties_head(),
            .eps = float(config.norm_eps),
            .score_cap = float(config.score_cap),
            .logit_cap = float(config.logit_cap),
            .embedding_scale = config.embedding_scale,
            .residual_scale = config.residual_scale,
            .logit_divisor = config.logit_divisor,
            .pad_token = config.pad_token,
            .layers = kinds_of_layers(family, config)};
  if (config.query_key_norm) d.kind.query_key_norm = QueryKeyNorm::kPerHead;
  if (config.parallel_residual) d.kind.parallel = true;
  // As Hugging Face's Gemma does it.
  if (d.kind.embedding_times_root)
    d.embedding_scale *= rounded_to(compute, std::sqrt(double(config.hidden)));
  if (d.kind.position_table) return d;
  d.rotary = make_rotary(config);
  if (d.kind.local_rotary) d.local_rotary = make_local_rotary(config);
  return d;
}

// Whether a matrix of a block is a target.
bool has_target(const Architecture& architecture, const std::string& target) {
  const auto matches = [&](const TensorSpec& tensor) {
    const std::string path = tensor.name.substr(0, tensor.name.rfind(".weight"));
    return tensor.shape.size() == 2 && is_target({.rank = 1, .targets = {target}}, path);
  };
  return std::ranges::any_of(architecture.units, [&](const UnitSpec& unit) {
    return unit.kind == UnitKind::kBlock && std::ranges::any_of(unit.tensors, matches);
  });
}

// Whether the block has an adapter where the first one has, and nowhere else.
bool is_adapted_alike(const UnitSpec& block, const UnitSpec& first) {
  return block.tensors.size() == first.tensors.size() &&
         std::ranges::equal(block.tensors, first.tensors, [](const auto& a, const auto& b) {
           return a.adapter == b.adapter && a.shape == b.shape;
         });
}

void freeze_model(Architecture& architecture, const LoraConfig& lora) {
  for (const UnitSpec& unit : architecture.units) {
    if (unit.kind == UnitKind::kBlock && !is_adapted_alike(unit, architecture.units[1]))
      fail(ErrorKind::kConfig,
           "lora.targets: {} has other adapters than {}; gxp adapts all layers alike", unit.name,
           architecture.units[1].name);
  }
  for (const std::string& target : lora.targets) {
    if (has_target(architecture, target)) continue;
    fail(ErrorKind::kConfig,
         "lora.targets '{}': no matrix of a block has a name that ends so; gxp shard-plan --units "
         "lists them",
         target);
  }
  for (UnitSpec& unit : architecture.units)
    for (TensorSpec& tensor : unit.tensors) tensor.frozen = !tensor.adapter;
}

}  // namespace

double LoraConfig::factor() const {
  return alpha / (rslora ? std::sqrt(double(rank)) : double(rank));
}

Architecture make_decoder(const Family& family, const ModelConfig& config,
                          const DecoderOptions& options) {
  Architecture arch{.config = config, .compute = options.compute, .kept = options.kept};
  Decoder d = describe(family, config, options.compute);
  if (options.lora.rank > 0) {
    d.adapter_rank = size_t(options.lora.rank);
    d.adapter_factor = float(options.lora.factor());
    d.adapter_dropout = float(options.lora.dropout);
  }
  arch.inputs_first = d.kind.inputs_first;
  arch.attention_channels = d.query_channels();
  arch.units.push_back(make_embedding(family.names, d));
  // A tied table is multiplied once, as the head; all others are only looked up.
  arch.looked_up = arch.units[0].parameter_count();
  if (d.tied_head) arch.looked_up -= d.vocabulary * d.hidden;
  for (int layer = 0; layer < config.layers; ++layer)
    arch.units.push_back(make_block(family, config, options, layer, d));
  arch.units.push_back(make_head(family.names, options.compute, d));
  arch.decoder = std::move(d);
  if (options.lora.rank > 0) freeze_model(arch, options.lora);
  return arch;
}

}  // namespace gxp
