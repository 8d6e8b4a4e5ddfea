#include "lib/ckpt/torch/dcp_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "lib/base/text/joined.h"
#include "lib/ckpt/torch/optimizer_state.h"

namespace gxp {
namespace {

using DcpPath = std::vector<std::string>;

constexpr std::array<std::string_view, 4> kDcpModels = {"model", "state_dict", "model_state_dict",
                                                        "module"};
constexpr std::array<std::string_view, 4> kDcpSteps = {"step", "global_step", "iteration",
                                                       "iter_num"};
constexpr std::string_view kDcpState = "state";
// Of AdamW with amsgrad; gxp has no place for it.
constexpr std::string_view kDcpMaximum = "max_exp_avg_sq";

bool is_dcp_model(std::string_view part) {
  return std::ranges::find(kDcpModels, part) != kDcpModels.end();
}

std::optional<Role> dcp_role(std::string_view key) {
  const auto found = std::ranges::find(kOptimizerKeys, key, &OptimizerKey::key);
  return found == kOptimizerKeys.end() ? std::nullopt : std::optional(found->role);
}

struct DcpState {
  std::string parameter;
  std::string key;
};

// "state.PARAMETER.KEY" as one key, after "PATH." if the whole path is one.
std::optional<DcpState> flat_dcp_state(std::string_view text, bool is_whole) {
  const std::string begin = fmt::format("{}.", kDcpState);
  size_t at = text.starts_with(begin) ? 0 : std::string_view::npos;
  if (at != 0 && is_whole) at = text.find("." + begin);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + begin.size() + (at == 0 ? 0 : 1));
  const size_t dot = text.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  const std::string_view key = text.substr(dot + 1);
  if (key != "step" && key != kDcpMaximum && !dcp_role(key)) return std::nullopt;
  return DcpState{std::string(text.substr(0, dot)), std::string(key)};
}

// Nothing for what is under "model": a weight may be called "state.x.step".
std::optional<DcpState> dcp_state(const DcpPath& path) {
  if (std::any_of(path.begin(), path.end() - 1, is_dcp_model)) return std::nullopt;
  for (size_t i = 0; i + 2 < path.size(); ++i) {
    if (path[i] != kDcpState) continue;
    return DcpState{path[i + 1], joined(std::span(path).subspan(i + 2), ".")};
  }
  return flat_dcp_state(path.back(), path.size() == 1);
}

// How many parts of its path the weights have in common, without the last one of each.
size_t common_parts(const std::vector<const DcpPath*>& weights) {
  if (weights.empty()) return 0;
  size_t common = weights[0]->size() - 1;
  for (const DcpPath* path : weights) {
    const size_t limit = std::min(common, path->size() - 1);
    common = size_t(
        std::mismatch(path->begin(), path->begin() + std::ptrdiff_t(limit), weights[0]->begin())
            .first -
        path->begin());
  }
  return common;
}

DcpPath model_prefix(const DcpPath& path) {
  const auto found = std::find_if(path.begin(), path.end() - 1, is_dcp_model);
  return found == path.end() - 1 ? DcpPath{} : DcpPath(path.begin(), found + 1);
}

// What weights' names leave away; a weight whose path does not begin so keeps its key.
DcpPath prefix_of(const std::vector<const DcpPath*>& weights) {
  if (const size_t common = common_parts(weights); common > 0)
    return {weights[0]->begin(), weights[0]->begin() + std::ptrdiff_t(common)};
  std::set<DcpPath> prefixes;
  for (const DcpPath* path : weights) {
    if (DcpPath prefix = model_prefix(*path); !prefix.empty()) prefixes.insert(std::move(prefix));
  }
  return prefixes.size() == 1 ? *prefixes.begin() : DcpPath{};
}

std::string without_prefix(const DcpPath& path, const DcpPath& prefix) {
  const bool begins =
      path.size() > prefix.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
  return joined(std::span(path).subspan(begins ? prefix.size() : 0), ".");
}

std::vector<std::string> weight_names(const std::vector<const DcpPath*>& weights) {
  for (const DcpPath& prefix : {prefix_of(weights), DcpPath{}}) {
    std::vector<std::string> names;
    for (const DcpPath* path : weights) names.push_back(without_prefix(*path, prefix));
    if (std::set(names.begin(), names.end()).size() == names.size()) return names;
  }
  GXP_ASSERT(false);  // keys are distinct
}

// The weights that a parameter of an optimizer may be.
class DcpWeights {
 public:
  void add(const std::string& name, const DcpPath& path) {
    names_.insert(name);
    by_last_[path.back()].push_back(name);
  }
  // Nothing: the parameter is a number.
  [[nodiscard]] std::optional<std::string> find(const std::string& parameter) const {
    if (names_.contains(parameter)) return parameter;
    const auto last = by_last_.find(parameter);
    if (last != by_last_.end() && last->second.size() == 1) return last->second[0];
    const bool number = std::ranges::all_of(parameter, [](char c) { return c >= '0' && c <= '9'; });
    return number ? std::nullopt : std::optional(parameter);
  }

 private:
  std::set<std::string> names_;
  std::map<std::string, std::vector<std::string>> by_last_;  // by the last part of their paths
};

DcpName name_state(const DcpState& state, const DcpTensor& tensor, const DcpWeights& weights) {
  const auto name = weights.find(state.parameter);
  if (state.key == "step" && checked_count(tensor.shape) == 1)
    return {.use = DcpUse::kStep, .name = name.value_or(""), .parameter = state.parameter};
  const auto role = dcp_role(state.key);
  if (!role || !name) return {.use = DcpUse::kLeftOut};
  return {DcpUse::kOptimizer, *role, *name, state.parameter};
}

}  // namespace

bool is_dcp_step(const DcpPath& path) {
  if (const auto state = dcp_state(path)) return state->key == "step";
  return std::ranges::find(kDcpSteps, path.back()) != kDcpSteps.end() &&
         std::ranges::none_of(path, is_dcp_model);
}

std::optional<DcpSetting> dcp_setting(const std::string& key) {
  constexpr std::string_view kGroups = "param_groups.";
  const size_t at = key.find(kGroups);
  const size_t dot = key.rfind('.');
  if (at == std::string::npos || dot < at + kGroups.size()) return std::nullopt;
  const size_t begin = at + kGroups.size();
  return DcpSetting{key.substr(begin, dot - begin), key.substr(dot + 1)};
}

bool is_dcp_optimizer_state(const DcpPath& path) { return dcp_state(path).has_value(); }

std::vector<DcpName> name_dcp_tensors(const std::vector<DcpTensor>& tensors) {
  std::vector<DcpName> result(tensors.size());
  std::vector<const DcpPath*> paths;
  std::vector<size_t> indices;  // of the weights
  for (size_t i = 0; i < tensors.size(); ++i) {
    const DcpPath& path = tensors[i].key.path;
    if (dcp_state(path)) continue;
    if (is_dcp_step(path) && checked_count(tensors[i].shape) == 1) {
      result[i].use = DcpUse::kStep;
      continue;
    }
    paths.push_back(&path);
    indices.push_back(i);
  }
  const std::vector<std::string> names = weight_names(paths);
  DcpWeights weights;
  for (size_t k = 0; k < names.size(); ++k) {
    result[indices[k]].name = names[k];
    weights.add(names[k], *paths[k]);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (const auto state = dcp_state(tensors[i].key.path))
      result[i] = name_state(*state, tensors[i], weights);
  }
  return result;
}

}  // namespace gxp
