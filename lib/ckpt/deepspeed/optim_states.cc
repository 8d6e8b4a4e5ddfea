#include "lib/ckpt/deepspeed/optim_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "lib/base/error.h"
#include "lib/ckpt/torch/torch_archive.h"

namespace gxp {
namespace {

constexpr std::array<std::pair<std::string_view, Role>, 3> kFlatKeys = {
    {{"exp_avg", Role::kAdamM},
     {"exp_avg_sq", Role::kAdamV},
     {"momentum_buffer", Role::kMomentum}}};

// The archive that is being read, and what its values are called in errors.
struct OptimFile {
  TorchArchive archive;
  std::string where;
  std::set<std::string> left_out = {};
};

NamedTensor read_flat(const OptimFile& file, PickleValue value, const std::string& name,
                      Role role) {
  const std::string where = fmt::format("{}: {}", file.where, name);
  const TorchTensor tensor = to_tensor(value, where);
  if (tensor.shape.size() != 1 || (tensor.shape[0] > 1 && tensor.strides[0] != 1))
    fail(ErrorKind::kCorrupt, "{}: expected a contiguous one-dimensional tensor", where);
  return file.archive.tensor(value, name, role);
}

template <class Number>
double read_number(const NamedTensor& tensor) {
  Number number{};
  tensor.read(0, {reinterpret_cast<std::byte*>(&number), sizeof(number)});
  return double(number);
}

double read_scalar(const NamedTensor& tensor, const std::string& where) {
  if (tensor.info.count() == 1) {
    if (tensor.info.dtype == StorageDType::kF32) return read_number<float>(tensor);
    if (tensor.info.dtype == StorageDType::kI64) return read_number<int64_t>(tensor);
    if (tensor.info.dtype == StorageDType::kI32) return read_number<int32_t>(tensor);
  }
  fail(ErrorKind::kCorrupt, "{}: a tensor of {} elements of {}, not a number", where,
       tensor.info.count(), to_string(tensor.info.dtype));
}

// What the optimizer keeps of group `g`; nothing if there is none.
std::optional<PickleValue> find_state(PickleValue states, size_t g, const std::string& where) {
  std::optional<PickleValue> found;
  if (states.is(PickleKind::kList)) {
    if (g < states.size()) found = states.item(g);
  } else {
    const PickleValue dict = to_dict(member(states, "state", where), where + ": state");
    for (size_t i = 0; i < dict.size(); ++i) {
      if (!dict.key(i).is(PickleKind::kInteger) || dict.key(i).integer() != int64_t(g)) continue;
      if (found) fail(ErrorKind::kCorrupt, "{}: state {} occurs twice", where, g);
      found = dict.value(i);
    }
  }
  if (found) to_dict(*found, fmt::format("{}: state {}", where, g));
  return found;
}

// Adds the tensors of group `g` to the partition; returns its step.
std::optional<uint64_t> take_state(OptimFile& file, PickleValue state, size_t g,
                                   ZeroPartition& partition) {
  std::optional<uint64_t> step;
  for (size_t i = 0; i < state.size(); ++i) {
    const std::string key = to_text(state.key(i), fmt::format("{}: state {}", file.where, g));
    const auto* known = std::ranges::find(kFlatKeys, key, &decltype(kFlatKeys)::value_type::first);
    if (key == "step") {
      step = read_step(file.archive, state.value(i), file.where + ": step");
    } else if (known != kFlatKeys.end()) {
      NamedTensor tensor =
          read_flat(file, state.value(i), fmt::format("{} of group {}", key, g), known->second);
      if (!partition.tensors.emplace(known->second, std::move(tensor)).second)
        fail(ErrorKind::kCorrupt, "{}: {} of group {} occurs twice", file.where, key, g);
    } else if (is_tensor(state.value(i))) {
      file.left_out.insert(key);
    }
  }
  return step;
}

std::vector<uint64_t> to_counts(PickleValue list, const std::string& where) {
  std::vector<uint64_t> counts;
  to_sequence(list, where);
  for (size_t i = 0; i < list.size(); ++i) counts.push_back(to_unsigned(list.item(i), where));
  return counts;
}

// The items of a list that has one for each group.
PickleValue per_group(PickleValue list, size_t groups, const std::string& where) {
  if (to_sequence(list, where).size() != groups)
    fail(ErrorKind::kCorrupt, "{}: {} groups, but {} are partitioned", where, list.size(), groups);
  return list;
}

std::map<std::string, ZeroSlice> read_slices(PickleValue dict, const std::string& where) {
  std::map<std::string, ZeroSlice> slices;
  to_dict(dict, where);
  for (size_t i = 0; i < dict.size(); ++i) {
    const std::string name = to_text(dict.key(i), where);
    const PickleValue address = dict.value(i);
    if (!address.is_call("deepspeed.utils.tensor_fragment.fragment_address"))
      fail(ErrorKind::kCorrupt, "{}: '{}' is {}, not a fragment_address", where, name,
           address.describe());
    const ZeroSlice slice{to_unsigned(member(address.state(), "start", where), where),
                          to_unsigned(member(address.state(), "numel", where), where)};
    if (!slices.emplace(name, slice).second)
      fail(ErrorKind::kCorrupt, "{}: '{}' occurs twice", where, name);
  }
  return slices;
}

// The lists of stages 1 and 2 that tell about the partitions.
void take_layout(PickleValue state, const std::string& where, std::vector<ZeroPartition>& groups) {
  const auto list = [&](const char* key) -> std::optional<PickleValue> {
    const auto found = find_member(state, key, where);
    if (!found || found->is_none()) return std::nullopt;
    return per_group(*found, groups.size(), fmt::format("{}: {}", where, key));
  };
  const auto paddings = list("group_paddings"), alignment = list("param_alignment_paddings"),
             slices = list("param_slice_mappings");
  for (size_t g = 0; g < groups.size(); ++g) {
    if (paddings) groups[g].padding = to_unsigned(paddings->item(g), where + ": group_paddings");
    if (alignment)
      groups[g].alignment = to_counts(alignment->item(g), where + ": param_alignment_paddings");
    if (slices) groups[g].slices = read_slices(slices->item(g), where + ": param_slice_mappings");
  }
}

void check_counts(PickleValue state, size_t ranks, const std::string& where) {
  const PickleValue count = member(state, "partition_count", where);
  const std::string place = where + ": partition_count";
  const std::vector<uint64_t> counts = count.is(PickleKind::kInteger)
                                           ? std::vector<uint64_t>{to_unsigned(count, place)}
                                           : to_counts(count, place);
  for (const uint64_t each : counts)
    if (each != ranks)
      fail(ErrorKind::kCorrupt,
           "{}: {} partitions, but the files are of {} ranks: files are missing, or these are "
           "parameters of MoE experts, which gxp does not read",
           place, each, ranks);
  const auto experts = find_member(state, "ds_zero_partition_groups", where);
  if (experts && !experts->is_none())
    fail(ErrorKind::kCorrupt,
         "{}: ds_zero_partition_groups: partitions of MoE experts, which gxp does not read", where);
}

void check_partition_bytes(const OptimStates& states) {
  uint64_t claimed = 0;
  for (const ZeroPartition& partition : states.partitions)
    for (const auto& [role, tensor] : partition.tensors)
      if (__builtin_add_overflow(claimed, tensor.info.bytes(), &claimed) ||
          claimed > states.file_bytes)
        fail(ErrorKind::kCorrupt, "{}: its partitions claim more than the file's {} bytes",
             states.where, states.file_bytes);
}

void take_partitions(OptimFile& file, PickleValue state, OptimStates& result) {
  const bool is_stage_3 = result.stage == 3;
  const char* key = is_stage_3 ? "fp32_flat_groups" : "single_partition_of_fp32_groups";
  const PickleValue masters =
      to_sequence(member(state, key, file.where), fmt::format("{}: {}", file.where, key));
  const auto kept =
      find_member(state, is_stage_3 ? "optimizer_state_dict" : "base_optimizer_state", file.where);
  if (kept && kept->is(PickleKind::kDict)) {
    if (const auto groups = find_member(*kept, "param_groups", file.where)) {
      result.settings.add_all(*groups, file.where);
      for (size_t g = 0; g < groups->size(); ++g)
        result.groups.push_back(read_parameter_group(groups->item(g), result.lost, file.where));
    }
  }
  if (const auto clip = find_member(state, "clip_grad", file.where))
    result.settings.add("clip_grad", *clip);
  std::vector<std::optional<uint64_t>> steps;
  for (size_t g = 0; g < masters.size(); ++g) {
    ZeroPartition& partition = result.partitions.emplace_back();
    partition.tensors.emplace(
        Role::kWeight,
        read_flat(file, masters.item(g), fmt::format("fp32 of group {}", g), Role::kWeight));
    const auto state_of_group =
        kept && !kept->is_none() ? find_state(*kept, g, file.where) : std::nullopt;
    if (state_of_group) steps.push_back(take_state(file, *state_of_group, g, partition));
  }
  if (!steps.empty() && std::ranges::all_of(steps, [&](auto step) { return step == steps[0]; }))
    result.step = steps[0];
  else if (!steps.empty())
    result.lost.emplace_back("the steps of groups of parameters, which differ");
}

}  // namespace

OptimStates read_optim_states(const std::string& path, size_t ranks) {
  const FileRange range = FileRange::open(path);
  OptimFile file{TorchArchive::open(range), "read " + path};
  OptimStates result{.where = file.where, .partitions = {}, .file_bytes = range.bytes};
  const PickleValue state = to_dict(member(file.archive.root(), "optimizer_state_dict", file.where),
                                    file.where + ": optimizer_state_dict");
  // BF16_Optimizer, which is stage 1, does not say so.
  const auto stage = find_member(state, "zero_stage", file.where);
  result.stage = stage ? read_zero_stage(*stage, file.where + ": zero_stage") : 1;
  check_counts(state, ranks, file.where);
  take_partitions(file, state, result);
  if (result.stage != 3) take_layout(state, file.where, result.partitions);
  check_partition_bytes(result);
  for (const std::string& key : file.left_out)
    result.lost.push_back(fmt::format("{} of parameters", key));
  return result;
}

int read_zero_stage(PickleValue value, const std::string& where) {
  if (value.is_call("deepspeed.runtime.zero.config.ZeroStageEnum") &&
      value.arguments().is(PickleKind::kTuple) && value.arguments().size() == 1)
    value = value.arguments().item(0);
  const uint64_t stage = to_unsigned(value, where);
  if (stage < 1 || stage > 3)
    fail(ErrorKind::kCorrupt, "{}: the stage is {}, not 1 to 3", where, stage);
  return int(stage);
}

uint64_t read_step(const TorchArchive& archive, PickleValue value, const std::string& where) {
  if (value.is(PickleKind::kInteger)) return to_unsigned(value, where);
  const double step = value.is(PickleKind::kFloat)
                          ? value.real()
                          : read_scalar(archive.tensor(value, "step"), where);
  constexpr double kMaxStep = 9007199254740992.0;  // 2^53: beyond, doubles skip numbers
  if (!(step >= 0) || step > kMaxStep || step != std::floor(step))
    fail(ErrorKind::kCorrupt, "{}: {} is not a number of steps", where, step);
  return uint64_t(step);
}

}  // namespace gxp
