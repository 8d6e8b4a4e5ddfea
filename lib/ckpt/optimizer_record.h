// Another program's optimizer settings besides its tensors, kept unchanged: the settings of its
// groups of parameters (learning rates, initial_lr, weight decay, ...), the order of the
// parameters, and the steps of parameters that differ. Formats that hold optimizer state write it
// as it was read; gxp's own keeps it in the state of the checkpoint, as JSON:
//
//   optimizer.groups   [{"settings": [["lr", 0.1], ...], "params": ["NAME", ...]}, ...]
//   optimizer.steps    {"NAME": 3, ...}
//
// What a reader cannot keep so is in `lost`: then no format that holds optimizer state is written,
// unless the user asks for the weights alone (without_optimizer()).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gxp {

struct NamedTensors;

struct ParameterGroup {
  // By name, in order; values as JSON: null, flags, numbers, texts, arrays of them. A tuple is
  // {"tuple": [...]}.
  std::vector<std::pair<std::string, std::string>> settings = {};
  std::vector<std::string> names = {};  // of the parameters, in the optimizer's order
  friend bool operator==(const ParameterGroup&, const ParameterGroup&) = default;
};

struct OptimizerRecord {
  std::vector<ParameterGroup> groups = {};     // none: not known, or gxp's own
  std::map<std::string, uint64_t> steps = {};  // by parameter; none: all have NamedTensors::step
  std::vector<std::string> lost = {};          // in words
};

// The last learning rate, in NamedTensors::state: of the step that was made last, or of the next
// one, as the program has it.
inline constexpr std::string_view kLastRate = "optimizer.lr";
inline constexpr std::string_view kGroupsKey = "optimizer.groups";
inline constexpr std::string_view kStepsKey = "optimizer.steps";

// The record in the state of a checkpoint, as pairs, and back. kCorrupt, naming `where`: no such
// JSON.
std::vector<std::pair<std::string, std::string>> to_state(const OptimizerRecord& record);
OptimizerRecord read_record(const std::vector<std::pair<std::string, std::string>>& state,
                            const std::string& where);
// Moves the pairs of a state to NamedTensors::optimizer.
void take_record(NamedTensors& tensors, const std::string& where);

// Forgets steps that are the checkpoint's own; where it has none, and all parameters have one, that
// is the checkpoint's. The log names others.
void settle_steps(NamedTensors& tensors);
// One parameter's; nothing if it is unknown.
std::optional<uint64_t> step_of(const NamedTensors& tensors, const std::string& name);

// Gives all names in the record new ones; a parameter that gets none is dropped.
void rename_record(OptimizerRecord& record,
                   const std::function<std::optional<std::string>(const std::string&)>& rename);

// The weights, without the optimizer's tensors, settings and record.
NamedTensors without_optimizer(NamedTensors tensors);

}  // namespace gxp
