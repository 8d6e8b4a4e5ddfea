#include "lib/ckpt/model_tensors.h"

#include <algorithm>

#include "lib/arch/architecture.h"
#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/text/plural.h"
#include "lib/ckpt/huggingface.h"
#include "lib/config/toml_reader.h"

namespace gxp {

std::string family_told(const KeyValues& settings) {
  const auto text = find_value(settings, "model.family");
  return text && text->size() >= 2 ? text->substr(1, text->size() - 2) : "";  // its quotes
}

KeyValues settings_of(const ModelConfig& model) {
  const Family& family = find_family(model.family);
  KeyValues settings = {{"model.family", to_toml(model.family)}};
  for (const auto& size : family.huggingface.sizes)
    settings.emplace_back(size.ours, to_toml(int64_t{model.*size.member}));
  settings.emplace_back("model.norm_eps", to_toml(model.norm_eps));
  if (family.has("rope_theta"))
    settings.emplace_back("model.rope_theta", to_toml(model.rope_theta));
  if (family.has("tied_head")) settings.emplace_back("model.tied_head", to_toml(model.tied_head));
  return settings;
}

std::vector<NamedTensor> weights_of_model(const NamedTensors& source, const ModelConfig& model) {
  // Before an architecture of as many layers is made: settings of a file may say any number.
  if (uint64_t(model.layers) > source.tensors.size())
    fail(ErrorKind::kCorrupt, "read the source: it has {} tensors, too few for {} layers",
         source.tensors.size(), model.layers);
  const NamedTensors named = with_gpt2_names(source);
  std::vector<NamedTensor> weights;
  for (const UnitSpec& unit : make_architecture(model).units) {
    for (const TensorSpec& spec : unit.tensors)
      weights.push_back(
          require_weight(named, spec.name, {spec.shape.begin(), spec.shape.end()}, "the source"));
  }
  return weights;
}

void report_unused_weights(const NamedTensors& source, size_t used) {
  const auto weights = size_t(std::ranges::count_if(
      source.tensors, [](const NamedTensor& tensor) { return tensor.info.role == Role::kWeight; }));
  if (weights > used)
    log_warn("{} for which the model has no place: left out", counted(weights - used, "tensor"));
}

}  // namespace gxp
