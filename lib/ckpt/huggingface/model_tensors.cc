#include "lib/ckpt/huggingface/model_tensors.h"

#include <set>

#include "lib/arch/architecture.h"
#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "lib/base/text/plural.h"
#include "lib/ckpt/huggingface/huggingface.h"
#include "lib/config/toml_reader.h"

namespace gxp {
namespace {

// Buffers that old files store beside the weights; each follows from the settings.
bool is_buffer(std::string_view name, const ModelConfig& model) {
  return find_family(model.family).has("rope_theta") ? name.ends_with(".rotary_emb.inv_freq")
                                                     : is_gpt2_mask(name);
}

// Settings of a file may say any number of layers: an architecture of as many is made only if the
// tensors are not fewer.
std::vector<UnitSpec> units_of(const NamedTensors& source, const ModelConfig& model) {
  if (uint64_t(model.layers) > source.tensors.size())
    fail(ErrorKind::kCorrupt, "read the source: it has {} tensors, too few for {} layers",
         source.tensors.size(), model.layers);
  return make_architecture(model).units;
}

}  // namespace

bool ties_head(const ModelConfig& model) {
  return model.tied_head || !find_family(model.family).has("tied_head");
}

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

std::vector<NamedTensor> weights_of_model(const NamedTensors& source, const ModelConfig& model,
                                          std::string_view act) {
  const NamedTensors named = with_gpt2_names(source);
  std::vector<NamedTensor> weights;
  for (const UnitSpec& unit : units_of(source, model)) {
    for (const TensorSpec& spec : unit.tensors)
      weights.push_back(
          require_weight(named, spec.name, {spec.shape.begin(), spec.shape.end()}, "the source"));
  }
  const NamedTensor* head = ties_head(model) ? find_tensor(named, kHeadName) : nullptr;
  if (head != nullptr && !are_equal(*head, weights.front()))
    fail(ErrorKind::kConfig, "{}: the head is tied, but {} is not {}", act, kHeadName,
         weights.front().info.name);
  const auto others = weights_without_place(source, model);
  if (!others.empty())
    fail(ErrorKind::kConfig,
         "{}: {} has no {}, such as {}; without them the model computes something else. If they "
         "are not needed, drop them with --map",
         act, model.family, counted(others.size(), "tensor"), others.front());
  return weights;
}

std::vector<std::string> weights_without_place(const NamedTensors& source,
                                               const ModelConfig& model) {
  std::set<std::string> places;
  if (ties_head(model)) places.emplace(kHeadName);
  for (const UnitSpec& unit : units_of(source, model)) {
    for (const TensorSpec& spec : unit.tensors) places.insert(spec.name);
  }
  std::vector<std::string> others;
  for (const NamedTensor& tensor : with_gpt2_prefix(source).tensors) {
    const TensorInfo& info = tensor.info;
    if (info.role == Role::kWeight && !places.contains(info.name) && !is_buffer(info.name, model))
      others.push_back(info.name);
  }
  return others;
}

}  // namespace gxp
