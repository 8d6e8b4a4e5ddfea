#include "lib/ckpt/huggingface/model_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/arch/architecture.h"
#include "lib/arch/family.h"
#include "lib/base/error.h"
#include "lib/base/text/plural.h"
#include "lib/ckpt/huggingface/huggingface.h"
#include "lib/config/settings.h"

namespace gxp {
namespace {

// Buffers that old files store beside the weights; each follows from the settings.
bool is_buffer(std::string_view name, const Family& family) {
  if (family.name == "gpt2") return is_gpt2_mask(name);
  if (family.name == "gpt_neox" &&
      (name.ends_with(".attention.bias") || name.ends_with(".attention.masked_bias")))
    return true;
  return name.ends_with(".rotary_emb.inv_freq");
}

// Settings of a file may say any number of layers: an architecture of as many is made only if the
// tensors are not fewer.
std::vector<UnitSpec> units_of(const NamedTensors& source, const ModelConfig& model) {
  if (uint64_t(model.layers) > source.tensors.size())
    fail(ErrorKind::kCorrupt, "read the source: it has {} tensors, too few for {} layers",
         source.tensors.size(), model.layers);
  return make_architecture(model).units;
}

void rename_weight(NamedTensors& tensors, std::string_view before, const std::string& now) {
  for (NamedTensor& tensor : tensors.tensors)
    if (tensor.info.name == before && tensor.info.role == Role::kWeight) tensor.info.name = now;
}

}  // namespace

std::string family_told(const KeyValues& settings) {
  const auto text = find_value(settings, "model.family");
  return text && text->size() >= 2 ? text->substr(1, text->size() - 2) : "";  // its quotes
}

std::string head_name(const Family& family) { return fmt::format("{}.weight", family.names.head); }

NamedTensors with_family_names(NamedTensors tensors, const ModelConfig& model) {
  if (model.family == "gpt2") tensors = with_gpt2_prefix(std::move(tensors));
  const Family& family = find_family(model.family);
  const std::string head = head_name(family);
  const std::string table = fmt::format("{}.weight", family.names.token_table);
  if (find_tensor(tensors, head) == nullptr) rename_weight(tensors, kHeadName, head);
  if (model.ties_head() && find_tensor(tensors, table) == nullptr)
    rename_weight(tensors, head, table);
  return tensors;
}

std::string tied_head_problem(const NamedTensors& tensors, const ModelConfig& model) {
  const Family& family = find_family(model.family);
  const std::string head = head_name(family);
  const std::string table = fmt::format("{}.weight", family.names.token_table);
  const NamedTensor* stored = find_tensor(tensors, head);
  const NamedTensor* rows = find_tensor(tensors, table);
  if (!model.ties_head() || stored == nullptr || rows == nullptr || are_equal(*stored, *rows))
    return "";
  return fmt::format("the head is tied to {}, but {} is stored and differs from it", table, head);
}

std::string setting_beyond(const ModelConfig& model, std::span<const std::string_view> known) {
  RunConfig run;
  run.model = model;
  const Family& family = find_family(model.family);
  for (const Setting& setting : settings()) {
    const bool is_own = setting.owners.empty() || family.has(setting.key);
    const bool is_known = std::ranges::find(known, setting.key) != known.end();
    if (setting.section == "model" && is_own && !is_known && !setting.is_default(run))
      return fmt::format("{} is {}", setting.name(), to_toml(setting.get(run)));
  }
  return "";
}

std::vector<NamedTensor> weights_of_model(const NamedTensors& source, const ModelConfig& model,
                                          std::string_view act) {
  const NamedTensors named = with_family_names(source, model);
  std::vector<NamedTensor> weights;
  for (const UnitSpec& unit : units_of(source, model)) {
    for (const TensorSpec& spec : unit.tensors)
      weights.push_back(
          require_weight(named, spec.name, {spec.shape.begin(), spec.shape.end()}, "the source"));
  }
  if (const auto problem = tied_head_problem(named, model); !problem.empty())
    fail(ErrorKind::kConfig, "{}: {}", act, problem);
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
  const Family& family = find_family(model.family);
  std::set<std::string> places;
  if (model.ties_head()) places.insert(head_name(family));
  for (const UnitSpec& unit : units_of(source, model)) {
    for (const TensorSpec& spec : unit.tensors) places.insert(spec.name);
  }
  std::vector<std::string> others;
  for (const NamedTensor& tensor : with_family_names(source, model).tensors) {
    const TensorInfo& info = tensor.info;
    if (info.role == Role::kWeight && !places.contains(info.name) && !is_buffer(info.name, family))
      others.push_back(info.name);
  }
  return others;
}

}  // namespace gxp
