#include "lib/ckpt/deepspeed/zero_merge.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/ckpt/cast.h"
#include "lib/ckpt/deepspeed/rank_parts.h"

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

}  // namespace

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

}  // namespace gxp
