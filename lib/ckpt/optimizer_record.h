// Another program's optimizer settings besides its tensors, kept unchanged: the settings of its
// groups of parameters (learning rates, initial_lr, weight decay, ...), the order of the
// parameters, and the steps of parameters that differ. Formats that hold optimizer state write it
// as it was read; gxp's own keeps it in the state of the checkpoint, as JSON:
//
//   optimizer.groups   [{"settings": [["lr", 0.1], ...], "params": ["NAME", ...]}, ...]
//   optimizer.steps    {"NAME": 3, ...}
//
// What a reader cannot keep in this form it lists in `lost`; a format that holds optimizer state is
// then written only if the user asks for the weights alone (without_optimizer()).
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
  // A file of optimizer state whose parameters are numbers, in the order of a model that is not
  // known; "": none (trainer/optimizer_file.h).
  std::string unnamed = {};
};

// What of the optimizer is not kept, in words, with remedies; "" if all is.
std::string lost_parts(const OptimizerRecord& record);

// The key in NamedTensors::state of the last learning rate: that of the last step, or of the next
// one, whichever the program stores.
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

// Drops parameters' steps that equal the checkpoint's. If the checkpoint has no step and all
// parameters have the same one, the checkpoint gets it. The log names steps that differ.
void settle_steps(NamedTensors& tensors);
// The step of one parameter; nothing if it is unknown.
std::optional<uint64_t> step_of(const NamedTensors& tensors, const std::string& name);

// Gives all names in the record new ones; a parameter that gets none is dropped.
void rename_record(OptimizerRecord& record,
                   const std::function<std::optional<std::string>(const std::string&)>& rename);

// The weights, without the optimizer's tensors, settings and record.
NamedTensors without_optimizer(NamedTensors tensors);

}  // namespace gxp
