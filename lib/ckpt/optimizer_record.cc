#include "lib/ckpt/optimizer_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/json/json.h"
#include "lib/base/log.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {
namespace {

Json group_json(const ParameterGroup& group) {
  Json settings = Json::array();
  for (const auto& [key, value] : group.settings)
    settings.push_back(Json::array({key, Json::parse(value)}));
  return {{"settings", settings}, {"params", group.names}};
}

ParameterGroup read_group_json(const Json& json, const std::string& where) {
  ParameterGroup group;
  for (const Json& pair : to_array(member(json, "settings", where), where)) {
    if (!pair.is_array() || pair.size() != 2)
      fail(ErrorKind::kCorrupt, "{}: a setting is not a pair", where);
    group.settings.emplace_back(to_text(pair[0], where), pair[1].dump());
  }
  for (const Json& name : to_array(member(json, "params", where), where))
    group.names.push_back(to_text(name, where));
  return group;
}

bool is_of_record(const std::pair<std::string, std::string>& pair) {
  return pair.first == kGroupsKey || pair.first == kStepsKey;
}

}  // namespace

std::string lost_parts(const OptimizerRecord& record) {
  std::vector<std::string> parts = record.lost;
  if (!record.unnamed.empty())
    parts.push_back(
        fmt::format("{}, which numbers the parameters by their order in a model that is not known "
                    "(--config DIR names the model)",
                    record.unnamed));
  return joined(parts, "; ");
}

KeyValues to_state(const OptimizerRecord& record) {
  KeyValues state;
  if (!record.groups.empty()) {
    Json groups = Json::array();
    for (const ParameterGroup& group : record.groups) groups.push_back(group_json(group));
    state.emplace_back(kGroupsKey, write_json(groups));
  }
  if (!record.steps.empty()) state.emplace_back(kStepsKey, write_json(Json(record.steps)));
  return state;
}

OptimizerRecord read_record(const KeyValues& state, const std::string& where) {
  OptimizerRecord record;
  if (const auto groups = find_value(state, kGroupsKey)) {
    const std::string place = fmt::format("{}: {}", where, kGroupsKey);
    const Json list = parse_json(*groups, place);
    for (const Json& group : to_array(list, place))
      record.groups.push_back(read_group_json(group, place));
  }
  if (const auto steps = find_value(state, kStepsKey)) {
    const std::string place = fmt::format("{}: {}", where, kStepsKey);
    const Json by_name = parse_json(*steps, place);
    for (const auto& [name, step] : to_object(by_name, place).items())
      record.steps.emplace(name, to_unsigned(step, place));
  }
  return record;
}

void take_record(NamedTensors& tensors, const std::string& where) {
  OptimizerRecord record = read_record(tensors.state, where);
  if (!record.groups.empty()) tensors.optimizer.groups = std::move(record.groups);
  if (!record.steps.empty()) tensors.optimizer.steps = std::move(record.steps);
  std::erase_if(tensors.state, is_of_record);
}

void settle_steps(NamedTensors& tensors) {
  auto& steps = tensors.optimizer.steps;
  if (steps.empty()) return;
  const uint64_t first = steps.begin()->second;
  const bool is_one =
      std::ranges::all_of(steps, [&](const auto& entry) { return entry.second == first; });
  if (is_one && !tensors.step) tensors.step = first;
  if (is_one && tensors.step == first) return steps.clear();
  if (is_one) {
    log_info("the optimizer's step is {}, the checkpoint's {}: both are kept", first,
             *tensors.step);
  } else {
    log_info("the optimizer's step is {} for '{}' and different for other parameters: all are kept",
             first, steps.begin()->first);
  }
}

std::optional<uint64_t> step_of(const NamedTensors& tensors, const std::string& name) {
  const auto found = tensors.optimizer.steps.find(name);
  return found == tensors.optimizer.steps.end() ? tensors.step : std::optional(found->second);
}

void rename_record(OptimizerRecord& record,
                   const std::function<std::optional<std::string>(const std::string&)>& rename) {
  for (ParameterGroup& group : record.groups) {
    std::vector<std::string> names;
    for (const std::string& name : group.names)
      if (auto renamed = rename(name)) names.push_back(std::move(*renamed));
    group.names = std::move(names);
  }
  std::map<std::string, uint64_t> steps;
  for (const auto& [name, step] : record.steps)
    if (auto renamed = rename(name)) steps.emplace(std::move(*renamed), step);
  record.steps = std::move(steps);
}

NamedTensors without_optimizer(NamedTensors tensors) {
  std::erase_if(tensors.tensors,
                [](const NamedTensor& tensor) { return tensor.info.role != Role::kWeight; });
  std::erase_if(tensors.config, [](const auto& pair) { return pair.first.starts_with("optim."); });
  std::erase_if(tensors.state,
                [](const auto& pair) { return pair.first.starts_with("optimizer."); });
  tensors.optimizer = {};
  return tensors;
}

}  // namespace gxp
