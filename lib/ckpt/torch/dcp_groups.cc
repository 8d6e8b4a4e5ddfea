#include "lib/ckpt/torch/dcp_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gxp {
namespace {

bool is_group_number(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string parameter_text(PickleValue value) {
  return value.is(PickleKind::kText) ? std::string(value.text()) : value.describe();
}

}  // namespace

bool DcpGroups::ByNumber::operator()(const std::string& a, const std::string& b) const {
  if (is_group_number(a) && is_group_number(b) && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

void DcpGroups::add(const DcpSetting& setting, PickleValue value) {
  settings_.add(setting.key, value);
  Group& group = groups_[setting.group];
  const bool is_list = value.is(PickleKind::kList) || value.is(PickleKind::kTuple);
  if (setting.key == "params" && is_list) {
    for (size_t i = 0; i < value.size(); ++i) group.params.push_back(parameter_text(value.item(i)));
  } else if (auto json = setting_json(value); json && setting.key != "param_names") {
    group.settings.emplace_back(setting.key, std::move(*json));
  } else if (!json) {
    lost_.push_back(fmt::format("the setting {} of a group of parameters", setting.key));
  }
}

void DcpGroups::finish(const std::map<std::string, std::string>& weights, NamedTensors& result) {
  const auto weight = [&](const std::string& parameter) {
    const auto found = weights.find(parameter);
    return found == weights.end() ? parameter : found->second;
  };
  if (!result.config.empty() || !result.optimizer.groups.empty()) return;
  settings_.finish(result);
  std::ranges::move(lost_, std::back_inserter(result.optimizer.lost));
  std::map<decltype(ParameterGroup::settings), size_t> places;  // flattened groups, by settings
  for (auto& [name, group] : groups_) {
    const bool is_flat = group.params.empty() && !is_group_number(name);
    if (!is_flat) {
      ParameterGroup& added = result.optimizer.groups.emplace_back();
      added.settings = std::move(group.settings);
      for (const std::string& parameter : group.params) added.names.push_back(weight(parameter));
      continue;
    }
    const auto [place, is_new] = places.emplace(group.settings, result.optimizer.groups.size());
    if (is_new) result.optimizer.groups.push_back({group.settings, {}});
    result.optimizer.groups[place->second].names.push_back(weight(name));
  }
}

}  // namespace gxp
