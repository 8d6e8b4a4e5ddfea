#include "lib/train/resume_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "lib/arch/optimizers.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/text/joined.h"
#include "lib/ckpt/huggingface/model_check.h"
#include "lib/ckpt/peft/peft.h"
#include "lib/optim/lr_schedule.h"
#include "lib/train/model/weights_file.h"

namespace gxp {
namespace {

// Settings that a resumed run must share with the one that it continues, besides the model's: those
// that decide which sample comes when, and what the optimizer's state means.
bool must_agree(std::string_view key) {
  constexpr std::array<std::string_view, 5> kKeys = {"data.order", "data.sequence", "model.context",
                                                     "optim.name", "train.seed"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

// Likewise, of a run that only reads the weights: what its adapters are, wherever they began.
bool tells_adapters(std::string_view key) { return key.starts_with("lora.") && key != "lora.init"; }

void check_agreement(const Checkpoint& checkpoint, const KeyValues& settings,
                     bool (*is_shared)(std::string_view key)) {
  for (const auto& [key, value] : settings) {
    const auto saved = find_value(checkpoint.manifest().info.config, key);
    if (!is_shared(key) || !saved || *saved == value) continue;
    fail(ErrorKind::kConfig,
         "resume from {}: {} is {} there and {} in this run; set it as it was, or start without "
         "--resume",
         checkpoint.path(), key, *saved, value);
  }
}

void check_weights(const Checkpoint& checkpoint, const KeyValues& settings,
                   const Architecture& architecture) {
  check_agreement(checkpoint, settings, tells_adapters);
  NamedTensors tensors = tensors_of(checkpoint);
  if (!architecture.decoder.adapters.empty()) tensors = without_adapters(std::move(tensors));
  const std::string mismatch = model_mismatch(tensors, architecture.config);
  if (!mismatch.empty())
    fail(ErrorKind::kConfig, "resume from {}: {}", checkpoint.path(), mismatch);
  for (const UnitSpec& unit : architecture.units) {
    for (const TensorSpec& spec : unit.tensors)
      (void)find_resumed(
          checkpoint,
          {spec.name, Role::kWeight, StorageDType::kF32, {spec.shape.begin(), spec.shape.end()}});
  }
}

// The checkpoint holds what this optimizer keeps of the tensors that are trained, and nothing that
// it does not know.
void check_kept(const Checkpoint& checkpoint, const OptimConfig& optim,
                const Architecture& architecture) {
  std::set<std::string_view> held, kept, needed;
  for (const LogicalTensor& tensor : checkpoint.manifest().tensors)
    if (tensor.info.role != Role::kWeight && tensor.info.role != Role::kCodecResidual)
      held.insert(to_string(tensor.info.role));
  for (const KeptState& state : make_optimizer_spec(optim).kept) {
    kept.insert(state.role);
    for (const UnitSpec& unit : architecture.units)
      for (const TensorSpec& tensor : unit.tensors)
        if (!state.shape(unit, tensor).empty()) needed.insert(state.role);
  }
  if (std::ranges::includes(held, needed) && std::ranges::includes(kept, held)) return;
  const std::string_view scales = to_string(Role::kAdamMScales);
  if (held.contains(scales) != kept.contains(scales) && held.contains(to_string(Role::kAdamV)))
    fail(ErrorKind::kConfig,
         "resume from {}: its moments are {}, but optim.state_dtype is \"{}\"; set it {}, or start "
         "without --resume, with model.init for its weights",
         checkpoint.path(), held.contains(scales) ? "8-bit codes" : "numbers, not 8-bit codes",
         optim.state_dtype, held.contains(scales) ? "to int8" : "as it was");
  const auto list = [](const auto& roles) {
    return roles.empty() ? "no optimizer state" : joined(roles, ", ");
  };
  fail(ErrorKind::kConfig,
       "resume from {}: it holds {}, but optim.name = \"{}\" keeps {}; set [optim] as it was, or "
       "start without --resume, with model.init for its weights",
       checkpoint.path(), list(held), optim.name, list(kept));
}

// What the tensors do not show, and no error can. "" where all of it is told.
std::string unrecorded(const Checkpoint& checkpoint, const RunConfig& config,
                       const KeyValues& settings) {
  const CheckpointInfo& info = checkpoint.manifest().info;
  std::vector<std::string> keys;
  for (const char* key : {"data.order", "data.sequence", "train.seed", "optim.name"})
    if (!find_value(info.config, key) && find_value(settings, key)) keys.emplace_back(key);
  if (auto model = unrecorded_settings(tensors_of(checkpoint), config.model); !model.empty())
    keys.insert(keys.begin(), std::move(model));
  if (config.train.precision == NumberType::kFp16 && !find_value(info.state, "fp16.scale"))
    keys.emplace_back("the loss scale");
  return joined(keys, ", ");
}

bool is_number(const std::string& text, double& number) {
  char* end = nullptr;
  number = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

bool is_near(double a, double b) {
  return std::fabs(a - b) <= 1e-6 * std::max(std::fabs(a), std::fabs(b));
}

bool is_same(const std::string& a, const std::string& b) {
  double x = 0, y = 0;
  return a == b || (is_number(a, x) && is_number(b, y) && x == y);
}

// Whether a setting decides over the steps that follow, as those do which must_agree() wants as they
// were.
bool shapes_steps(std::string_view key) {
  constexpr std::array<std::string_view, 3> kSections = {"optim.", "lr_schedule.", "data."};
  constexpr std::array<std::string_view, 4> kKeys = {"train.steps", "train.precision", "comm.codec",
                                                     "comm.gather_codec"};
  return std::ranges::any_of(kSections, [&](auto section) { return key.starts_with(section); }) ||
         std::ranges::find(kKeys, key) != kKeys.end();
}

// Of the run that has written the checkpoint; nothing where it does not tell.
std::optional<uint64_t> samples_of_a_step(const CheckpointInfo& info) {
  uint64_t samples = uint64_t(info.world_size);
  for (const char* key : {"train.micro_batch", "train.grad_accum"}) {
    const auto value = find_value(info.config, key);
    double count = 0;
    if (!value || !is_number(*value, count)) return std::nullopt;
    samples *= uint64_t(count);
  }
  return samples;
}

// Another program's learning rate, which is no setting of gxp's.
void warn_of_rate(const CheckpointInfo& info, const RunConfig& config) {
  const auto rate = find_value(info.state, kLastRate);
  double last = 0;
  if (!rate || !is_number(*rate, last)) return;
  const auto rate_at = [&](uint64_t step) {
    return learning_rate(config.lr_schedule, config.optim.lr, int64_t(step), config.train.steps);
  };
  const double then = rate_at(info.step), next = rate_at(info.step + 1);
  if (!is_near(last, then) && !is_near(last, next))
    log_warn(
        "resume: the learning rate was {:.3g} after step {}; [lr_schedule] gives {:.3g} in that "
        "step and {:.3g} in the next",
        last, info.step, then, next);
}

OptimizerRecord record_of(const Checkpoint& checkpoint) {
  return read_record(checkpoint.manifest().info.state, "resume from " + checkpoint.path());
}

// gxp has one step for all parameters, by which Adam corrects its moments.
void check_steps(const Checkpoint& checkpoint, const OptimizerRecord& record) {
  if (record.steps.empty()) return;
  const auto& [name, step] = *record.steps.begin();
  fail(ErrorKind::kConfig,
       "resume from {}: the optimizer's step is {} for '{}', the checkpoint's is {}; gxp has one "
       "step for all parameters: convert it again with --step {}, if all have that step, or start "
       "without --resume, with model.init for its weights",
       checkpoint.path(), step, name, checkpoint.manifest().info.step, step);
}

// Settings of torch.optim's and DeepSpeed's groups that gxp has, or that change no bit of a step.
constexpr std::array<std::string_view, 18> kGroupKeys = {"lr",
                                                         "initial_lr",
                                                         "betas",
                                                         "eps",
                                                         "weight_decay",
                                                         "momentum",
                                                         "dampening",
                                                         "nesterov",
                                                         "amsgrad",
                                                         "maximize",
                                                         "foreach",
                                                         "fused",
                                                         "capturable",
                                                         "differentiable",
                                                         "decoupled_weight_decay",
                                                         "bias_correction",
                                                         "name",
                                                         "step"};

// Another program's optimizer that keeps Adam's or SGD's tensors and makes another step of them.
void check_groups(const Checkpoint& checkpoint, const OptimizerRecord& record) {
  std::set<std::string> others;
  for (const ParameterGroup& group : record.groups) {
    for (const auto& [key, value] : group.settings) {
      if ((key == "maximize" || key == "amsgrad") && value == "true") others.insert(key + " on");
      if (std::ranges::find(kGroupKeys, key) == kGroupKeys.end())
        others.insert(fmt::format("{} = {}", key, value));
    }
    // torch's Adam and AdamW always tell amsgrad; RAdam has this key and not that one.
    if (find_value(group.settings, "decoupled_weight_decay") &&
        !find_value(group.settings, "amsgrad"))
      others.insert("no amsgrad, as torch's RAdam has none");
  }
  if (!others.empty())
    fail(ErrorKind::kConfig,
         "resume from {}: gxp does not implement its optimizer: its parameter groups have {}; "
         "start without --resume, with model.init for its weights",
         checkpoint.path(), joined(others, ", "));
}

// Another program's groups of parameters, where a run of gxp's treats theirs in another way.
void warn_of_groups(const Checkpoint& checkpoint, const RunConfig& config) {
  const OptimizerRecord record = record_of(checkpoint);
  std::set<std::string> rates;
  std::vector<std::string> changed;
  for (const ParameterGroup& group : record.groups) {
    if (const auto rate = find_value(group.settings, "lr")) rates.insert(*rate);
    const auto told = find_value(group.settings, "weight_decay");
    double then = 0;
    if (!told || !is_number(*told, then)) continue;
    for (const std::string& name : group.names) {
      const LogicalTensor* weight = checkpoint.find(name, Role::kWeight);
      if (weight == nullptr) continue;
      const bool decays = weight->info.shape.size() >= 2 || config.optim.decay_vectors;
      const double now = decays ? config.optim.weight_decay : 0;
      if (!is_near(then, now)) changed.push_back(fmt::format("{} {}, now {}", name, then, now));
    }
  }
  if (rates.size() > 1)
    log_warn("resume: parameter groups had the learning rates {}; all have one now",
             joined(rates, ", "));
  if (!changed.empty())
    log_warn("resume: the weight decay of these parameters changes: {}",
             joined(std::span(changed).first(std::min<size_t>(changed.size(), 8)), ", "));
}

// Codes and their scales stay as they are.
void report_types(const Checkpoint& checkpoint, const OptimConfig& optim) {
  std::map<StorageDType, std::set<std::string_view>> changed;  // by the type that it becomes
  for (const LogicalTensor& tensor : checkpoint.manifest().tensors) {
    const TensorInfo& info = tensor.info;
    const bool is_rounded = info.role != Role::kWeight && optim.state_dtype == MomentType::kBf16;
    const auto kept = is_rounded ? StorageDType::kBF16 : StorageDType::kF32;
    if (info.dtype != kept && becomes_f32(info.dtype)) changed[kept].insert(to_string(info.dtype));
  }
  for (const auto& [kept, types] : changed)
    log_info("resume: tensors of {} become {}", joined(types, ", "), to_string(kept));
}

}  // namespace

const LogicalTensor& find_resumed(const Checkpoint& checkpoint, const TensorInfo& wanted) {
  const LogicalTensor* found = checkpoint.find(wanted.name, wanted.role);
  if (found == nullptr)
    fail(ErrorKind::kConfig,
         "resume from {}: the optimizer state of {} ({}) is missing; was it frozen? Set "
         "train.frozen as it was, or start without --resume, with model.init for its weights",
         checkpoint.path(), wanted.name, to_string(wanted.role));
  if (found->info.shape != wanted.shape)
    fail(ErrorKind::kConfig,
         "resume from {}: the {} of {} has the shape ({}), [model] requires ({})",
         checkpoint.path(), to_string(wanted.role), wanted.name, joined(found->info.shape, ", "),
         joined(wanted.shape, ", "));
  const bool are_codes = wanted.dtype == StorageDType::kU8;
  if (are_codes ? found->info.dtype != wanted.dtype : !becomes_f32(found->info.dtype))
    fail(ErrorKind::kConfig, "resume from {}: the {} of {} has type {}; {} can be read",
         checkpoint.path(), to_string(wanted.role), wanted.name, to_string(found->info.dtype),
         are_codes ? "U8" : "F64, F32, F16 and BF16");
  return *found;
}

void check_loadable(const Checkpoint& checkpoint, const KeyValues& settings,
                    const Architecture& architecture) {
  check_weights(checkpoint, settings, architecture);
}

void check_resumable(const Checkpoint& checkpoint, const RunConfig& config,
                     const KeyValues& settings, const Architecture& architecture) {
  check_weights(checkpoint, settings, architecture);
  check_agreement(checkpoint, settings, must_agree);
  check_kept(checkpoint, config.optim, architecture);
  const OptimizerRecord record = record_of(checkpoint);
  check_steps(checkpoint, record);
  check_groups(checkpoint, record);
  if (checkpoint.manifest().info.step == 0)
    fail(ErrorKind::kConfig,
         "resume from {}: it does not record the step at which it was saved; convert it with "
         "--step, or start without --resume, with model.init for its weights",
         checkpoint.path());
}

std::string describe_changes(const CheckpointInfo& info, const KeyValues& settings,
                             uint64_t samples_per_step) {
  std::vector<std::string> changed;
  for (const auto& [key, value] : settings) {
    const auto saved = find_value(info.config, key);
    if (shapes_steps(key) && saved && !is_same(*saved, value))
      changed.push_back(fmt::format("{} was {}, is now {}", key, *saved, value));
  }
  const auto samples = samples_of_a_step(info);
  if (samples && *samples != samples_per_step)
    changed.push_back(fmt::format("a step had {} samples, has now {}", *samples, samples_per_step));
  return joined(changed, "; ");
}

uint64_t samples_before(const CheckpointInfo& info, uint64_t samples_per_step) {
  return info.samples_consumed > 0 ? info.samples_consumed : info.step * samples_per_step;
}

void report_resumed(const Checkpoint& checkpoint, const RunConfig& config,
                    const KeyValues& settings, uint64_t samples_per_step) {
  const CheckpointInfo& info = checkpoint.manifest().info;
  if (info.samples_consumed == 0)
    log_info("resume: the checkpoint does not record samples consumed; assuming {} steps x {} = {}",
             info.step, samples_per_step, samples_before(info, samples_per_step));
  const std::string keys = unrecorded(checkpoint, config, settings);
  if (!keys.empty())
    log_info("resume: not recorded in the checkpoint, taken from this run: {}", keys);
  report_types(checkpoint, config.optim);
  const std::string changes = describe_changes(info, settings, samples_per_step);
  if (!changes.empty()) log_warn("resume: {}", changes);
  warn_of_rate(info, config);
  warn_of_groups(checkpoint, config);
}

}  // namespace gxp
