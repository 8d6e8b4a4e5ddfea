#include "lib/ckpt/deepspeed/zero_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/cast.h"
#include "lib/ckpt/deepspeed/model_states.h"
#include "lib/ckpt/deepspeed/optim_states.h"
#include "lib/ckpt/deepspeed/rank_parts.h"
#include "lib/ckpt/deepspeed/zero_files.h"

namespace gxp {
namespace {

constexpr uint64_t kAlignmentBytes = 16;  // zero_optimization.parameter_alignment
constexpr uint64_t kFlatAlignment = 2;    // elements a rank (nccl_start_alignment_factor)

using GroupParts = std::map<Role, RankParts>;

std::string place_of(const OptimStates& rank, size_t group) {
  return fmt::format("{}: group {}", rank.where, group);
}

void check_group_count(const std::vector<OptimStates>& ranks, size_t groups) {
  for (const OptimStates& rank : ranks)
    if (rank.partitions.size() != groups)
      fail(ErrorKind::kCorrupt, "{}: {} partitioned groups, {} expected", rank.where,
           rank.partitions.size(), groups);
}

// Of all ranks, by what the tensors are. All ranks have the same ones, of the same types.
GroupParts collect_parts(std::vector<OptimStates>& ranks, size_t group) {
  std::map<Role, std::vector<NamedTensor>> lists;
  const auto same_role = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.info.dtype == b.second.info.dtype;
  };
  for (const OptimStates& rank : ranks)
    if (!std::ranges::equal(rank.partitions[group].tensors, ranks[0].partitions[group].tensors,
                            same_role))
      fail(ErrorKind::kCorrupt, "{}: its optimizer keeps other tensors or types than rank 0's",
           place_of(rank, group));
  for (OptimStates& rank : ranks)
    for (auto& [role, tensor] : rank.partitions[group].tensors)
      lists[role].push_back(std::move(tensor));
  GroupParts parts;
  for (auto& [role, list] : lists)
    parts[role] = std::make_shared<const std::vector<NamedTensor>>(std::move(list));
  return parts;
}

void add_parameter(const ZeroParameter& parameter, const GroupParts& parts, RankPlacement placement,
                   std::vector<NamedTensor>& tensors) {
  for (const auto& [role, list] : parts)
    tensors.push_back(gather_parts(
        {parameter.name, role, list->front().info.dtype, parameter.shape}, list, placement));
}

// Where the parameters of a group lie in the whole of its partitions.
struct FlatLayout {
  std::vector<uint64_t> starts;
  uint64_t total = 0;      // without the padding at the end
  uint64_t partition = 0;  // elements of each rank
};

FlatLayout lay_out(const ZeroGroup& group, const std::vector<uint64_t>& alignment, uint64_t ranks,
                   const std::string& where) {
  if (!alignment.empty() && alignment.size() != group.size())
    fail(ErrorKind::kCorrupt, "{}: {} param_alignment_paddings of {} parameters", where,
         alignment.size(), group.size());
  FlatLayout layout;
  for (size_t i = 0; i < group.size(); ++i) {
    const uint64_t padding = alignment.empty() ? 0 : alignment[i];
    layout.starts.push_back(layout.total);
    // Fewer elements than there are bytes in the alignment, after all but the last.
    if (padding >= kAlignmentBytes || (padding > 0 && i + 1 == group.size()))
      fail(ErrorKind::kCorrupt, "{}: {} elements of padding after parameter '{}'", where, padding,
           group[i].name);
    if (__builtin_add_overflow(layout.total, group[i].count + padding, &layout.total) ||
        layout.total > UINT64_MAX / 16)
      fail(ErrorKind::kCorrupt, "{}: the parameters' elements exceed 64 bits", where);
  }
  layout.partition = round_up(layout.total, kFlatAlignment * ranks) / ranks;
  return layout;
}

uint64_t own_elements(const FlatLayout& layout, size_t rank) {
  const uint64_t begin = rank * layout.partition;
  return layout.total <= begin ? 0 : std::min(layout.total - begin, layout.partition);
}

void check_lengths(const ZeroPartition& partition, const FlatLayout& layout, size_t rank,
                   const std::string& where) {
  const uint64_t own = own_elements(layout, rank);
  for (const auto& [role, tensor] : partition.tensors) {
    const uint64_t count = tensor.info.count();
    if (count < own || count > layout.partition)
      fail(ErrorKind::kCorrupt,
           "{}: {} elements of {}; the shapes require {}, or up to {} with padding", where, count,
           to_string(role), own, layout.partition);
  }
}

// Before 0.19, all of the padding was the last rank's, even more than its partition.
void check_padding(const ZeroPartition& partition, const FlatLayout& layout, size_t rank,
                   size_t ranks, const std::string& where) {
  if (!partition.padding) return;
  const uint64_t own_padding = layout.partition - own_elements(layout, rank);
  const uint64_t last_padding =
      rank + 1 == ranks ? layout.partition * ranks - layout.total : uint64_t{0};
  if (partition.padding != own_padding && partition.padding != last_padding)
    fail(ErrorKind::kCorrupt, "{}: group_paddings says {}, but {} follow from the shapes", where,
         *partition.padding, own_padding);
}

// param_slice_mappings tell the same as shapes and paddings, from the rank's side.
void check_slices(const ZeroPartition& partition, const ZeroGroup& group, const FlatLayout& layout,
                  size_t rank, const std::string& where) {
  if (!partition.slices) return;
  const uint64_t begin = rank * layout.partition, end = begin + layout.partition;
  size_t found = 0;
  for (size_t i = 0; i < group.size(); ++i) {
    const uint64_t from = std::max(layout.starts[i], begin);
    const uint64_t to = std::min(layout.starts[i] + group[i].count, end);
    const auto slice = partition.slices->find(group[i].name);
    const bool is_told = slice != partition.slices->end();
    if (is_told) ++found;
    if (from >= to && !is_told) continue;
    if (from >= to
            ? slice->second.count != 0
            : !is_told || slice->second.start != from - begin || slice->second.count != to - from)
      fail(ErrorKind::kCorrupt,
           "{}: param_slice_mappings put parameter '{}' elsewhere than the shapes do", where,
           group[i].name);
  }
  if (found != partition.slices->size())
    fail(ErrorKind::kCorrupt, "{}: param_slice_mappings have parameters of no shape", where);
}

// Fails where a master weight is not the module's, after rounding to its type.
void check_module(const std::vector<NamedTensor>& tensors, const std::vector<NamedTensor>& module,
                  const std::string& where) {
  if (module.empty()) return;
  std::map<std::string_view, const NamedTensor*> by_name;
  for (const NamedTensor& tensor : module) by_name[tensor.info.name] = &tensor;
  const auto overflows = std::make_shared<OverflowCount>(0);  // owners: the readers
  for (const NamedTensor& weight : tensors) {
    if (weight.info.role != Role::kWeight) continue;
    const auto found = by_name.find(weight.info.name);
    NamedTensors one{.tensors = {weight}};
    if (found != by_name.end() && found->second->info.dtype != weight.info.dtype)
      one = cast_weights(std::move(one), found->second->info.dtype, overflows);
    if (found == by_name.end() || !are_equal(one.tensors[0], *found->second))
      fail(ErrorKind::kCorrupt,
           "{}: with round_robin_gradients, parameter '{}' is not where the shapes put it", where,
           weight.info.name);
  }
}

FlatLayout check_flat_group(const std::vector<OptimStates>& ranks, const ZeroGroup& group, size_t g,
                            bool has_slices) {
  const auto& alignment = ranks[0].partitions[g].alignment;
  const FlatLayout layout = lay_out(group, alignment.value_or(std::vector<uint64_t>{}),
                                    ranks.size(), place_of(ranks[0], g));
  for (size_t r = 0; r < ranks.size(); ++r) {
    const ZeroPartition& partition = ranks[r].partitions[g];
    const std::string where = place_of(ranks[r], g);
    if (partition.alignment != alignment)
      fail(ErrorKind::kCorrupt, "{}: param_alignment_paddings differ from rank 0's", where);
    check_lengths(partition, layout, r, where);
    check_padding(partition, layout, r, ranks.size(), where);
    if (has_slices) check_slices(partition, group, layout, r, where);
  }
  return layout;
}

// All tensors of all ranks' sub-group are as long as the master weights of rank 0.
uint64_t check_split_group(const std::vector<OptimStates>& ranks, size_t g) {
  const uint64_t count = ranks[0].partitions[g].tensors.at(Role::kWeight).info.count();
  for (const OptimStates& rank : ranks)
    for (const auto& [role, tensor] : rank.partitions[g].tensors)
      if (tensor.info.count() != count)
        fail(ErrorKind::kCorrupt, "{}: {} elements of {}; rank 0 has {} master weights",
             place_of(rank, g), tensor.info.count(), to_string(role), count);
  return count;
}

// Parameters out of the ranks' flat partitions.
//
// Stages 1 and 2: the parameters of a group follow each other, each with its alignment padding, and
//   are padded to a multiple of 2 * ranks; rank r has the elements from r * P on, P = that / ranks.
//   Master weights are saved without the padding at the end, moments with it.
// Stage 3: each parameter is split on its own; rank r has the elements from r * p on, p = its count
//   / ranks rounded up, so that its last ranks may have padding. The parts follow each other
//   through a rank's sub-groups, and none is in two of them.
//
// Checked: each rank has the elements that are its own, and no more than a partition; the paddings
// are the ones that follow from the shapes; where param_slice_mappings tell where a parameter lies,
// it is there; in stage 3 the sub-groups are as long in all ranks, and used up. All that a group
// keeps (moments) is there in all ranks, and laid out like its master weights.
// Source: deepspeed 0.19.8, utils/zero_to_fp32.py, runtime/zero/stage_1_and_2.py.

// All parameters of all groups, by parameter, the weight first; by rank, at least one. Takes the
// ranks' tensors. kCorrupt, naming the rank's file and the group.
//
// With round_robin_gradients the flat order is that of the shapes, and param_slice_mappings tell
// another one. So `module` has the parameters again, in the training's type: a weight that is not
// equal to them after rounding is kCorrupt. Empty: the slices are compared. Cost: it reads both.
std::vector<NamedTensor> merge_zero_2(std::vector<OptimStates> ranks,
                                      const std::vector<ZeroGroup>& groups,
                                      const std::vector<NamedTensor>& module) {
  const std::string where = ranks[0].where;
  check_group_count(ranks, groups.size());
  std::vector<NamedTensor> tensors;
  for (size_t g = 0; g < groups.size(); ++g) {
    const FlatLayout layout = check_flat_group(ranks, groups[g], g, module.empty());
    const GroupParts parts = collect_parts(ranks, g);
    for (size_t i = 0; i < groups[g].size(); ++i)
      add_parameter(groups[g][i], parts, {.start = layout.starts[i], .width = layout.partition},
                    tensors);
  }
  check_module(tensors, module, where);
  return tensors;
}

std::vector<NamedTensor> merge_zero_3(std::vector<OptimStates> ranks,
                                      const std::vector<ZeroGroup>& groups) {
  check_group_count(ranks, ranks[0].partitions.size());
  std::vector<NamedTensor> tensors;
  size_t next = 0;  // sub-group to come
  uint64_t used = 0, length = 0;
  GroupParts parts;
  const auto open_next = [&] {
    length = check_split_group(ranks, next);
    parts = collect_parts(ranks, next);
    used = 0;
    ++next;
  };
  for (const ZeroGroup& group : groups) {
    for (const ZeroParameter& parameter : group) {
      while (used == length && next < ranks[0].partitions.size()) open_next();
      const uint64_t width = (parameter.count + ranks.size() - 1) / ranks.size();
      if (parts.empty() || width > length - used)
        fail(ErrorKind::kCorrupt,
             "{}: parameter '{}' takes {} elements of sub-group {}, which has {} left",
             ranks[0].where, parameter.name, width, next == 0 ? 0 : next - 1, length - used);
      add_parameter(parameter, parts, {.width = width, .base = used}, tensors);
      used += width;
    }
  }
  while (used == length && next < ranks[0].partitions.size()) open_next();
  if (used != length)
    fail(ErrorKind::kCorrupt, "{}: {} elements of sub-group {} belong to no parameter",
         ranks[0].where, length - used, next - 1);
  return tensors;
}

constexpr const char* kLatest = "latest";
constexpr uint64_t kMaxZeroClaim = 8;  // in the files' bytes

bool has_zero_files(const std::string& directory) {
  return is_real_directory(directory) && std::ranges::any_of(names_in(directory), is_zero_file);
}

// Of stage 1 or 2, one file; of stage 3, one a rank. Both: one checkpoint was written over another.
std::vector<std::string> model_files(const ZeroFiles& files, int stage) {
  const bool is_stage_3 = stage == 3;
  if (files.module_states.empty() == files.rank_states.empty() ||
      files.rank_states.empty() == is_stage_3)
    fail(ErrorKind::kCorrupt,
         "read {}: stage {} needs {}; the model states found are missing, of another stage, or of "
         "two checkpoints",
         files.directory, stage,
         is_stage_3 ? "zero_pp_rank_R_mp_rank_00_model_states.pt" : "mp_rank_00_model_states.pt");
  return is_stage_3 ? files.rank_states : std::vector<std::string>{files.module_states};
}

std::vector<OptimStates> read_ranks(const ZeroFiles& files) {
  if (files.optim_states.empty())
    fail(ErrorKind::kCorrupt,
         "read {}: there are no *_optim_states.pt files, which hold ZeRO's weights",
         files.directory);
  std::vector<OptimStates> ranks;
  for (const std::string& path : files.optim_states) {
    ranks.push_back(read_optim_states(path, files.optim_states.size()));
    const OptimStates& rank = ranks.back();
    if (rank.stage != ranks[0].stage)
      fail(ErrorKind::kCorrupt, "{}: stage {}, but rank 0 has stage {}", rank.where, rank.stage,
           ranks[0].stage);
    if (rank.step != ranks[0].step)
      fail(ErrorKind::kCorrupt, "{}: its optimizer is at another step than rank 0's", rank.where);
  }
  return ranks;
}

void check_zero_claim(const NamedTensors& tensors, uint64_t file_bytes, const std::string& where) {
  uint64_t claimed = 0;
  for (const NamedTensor& tensor : tensors.tensors)
    if (__builtin_add_overflow(claimed, tensor.info.bytes(), &claimed) ||
        claimed / kMaxZeroClaim > file_bytes)
      fail(ErrorKind::kCorrupt, "{}: its tensors claim more than {} times its files' {} bytes",
           where, kMaxZeroClaim, file_bytes);
}

}  // namespace

// Whatever `latest` says, which may be damaged.
bool is_zero_checkpoint(const std::string& path) {
  try {
    if (has_zero_files(path)) return true;
    return path_exists(path + "/" + kLatest) &&
           std::ranges::any_of(names_in(path), [&](const std::string& name) {
             return has_zero_files(path + "/" + name);
           });
  } catch (const Error&) {
    return false;  // another format, or reading it tells
  }
}

NamedTensors read_zero_checkpoint(const std::string& path) {
  const ZeroFiles files =
      list_zero_files(has_zero_files(path) ? path : tag_directory(path, kLatest));
  if (files.optim_states.empty() && !files.module_states.empty() &&
      is_unpartitioned(files.module_states)) {
    NamedTensors result = read_unpartitioned(files.module_states);
    result.format = "deepspeed";
    return result;
  }
  std::vector<OptimStates> ranks = read_ranks(files);
  const int stage = ranks[0].stage;
  ZeroModel model = read_model_states(model_files(files, stage), stage == 3);
  const std::string where = "read " + files.directory;
  NamedTensors result = std::move(model.run);
  result.format = "deepspeed";
  result.strategy = fmt::format("zero{}", stage);
  if (result.world_size != int(ranks.size()))
    fail(ErrorKind::kCorrupt,
         "{}: dp_world_size is {}, but there are *_optim_states.pt of {} ranks", where,
         *result.world_size, ranks.size());
  if (ranks[0].step && result.step && ranks[0].step != result.step)
    log_info("{}: global_steps is {} and the optimizer's step {}; the latter is used", where,
             *result.step, *ranks[0].step);
  if (ranks[0].step) result.step = ranks[0].step;
  ranks[0].settings.finish(result);
  result.optimizer.lost = ranks[0].lost;
  keep_groups(ranks[0].groups, model.groups, where, result);
  uint64_t file_bytes = model.file_bytes;
  for (const OptimStates& rank : ranks) file_bytes += rank.file_bytes;
  result.tensors = stage == 3 ? merge_zero_3(std::move(ranks), model.groups)
                              : merge_zero_2(std::move(ranks), model.groups, model.module);
  std::ranges::move(model.others, std::back_inserter(result.tensors));
  finish_weights(model, where, result.tensors);
  check_zero_claim(result, file_bytes, where);
  return result;
}

}  // namespace gxp
