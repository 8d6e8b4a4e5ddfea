#include "lib/ckpt/deepspeed/zero_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/ckpt/deepspeed/model_states.h"
#include "lib/ckpt/deepspeed/optim_states.h"
#include "lib/ckpt/deepspeed/zero_files.h"
#include "lib/ckpt/deepspeed/zero_merge.h"

namespace gxp {
namespace {

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
