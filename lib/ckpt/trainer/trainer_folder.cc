#include "lib/ckpt/trainer/trainer_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/json/json.h"
#include "lib/base/log.h"
#include "lib/ckpt/deepspeed/zero_checkpoint.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/huggingface/config_json.h"
#include "lib/ckpt/huggingface/huggingface.h"
#include "lib/ckpt/peft/peft.h"
#include "lib/ckpt/safetensors/safetensors.h"
#include "lib/ckpt/torch/dcp.h"
#include "lib/ckpt/torch/pt_file.h"
#include "lib/ckpt/trainer/optimizer_file.h"

namespace gxp {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMaxTrainerStateBytes = 100'000'000;  // it has the whole log
constexpr uint64_t kMaxConfigJsonBytes = uint64_t{16} << 20;
constexpr std::string_view kTrainerState = "trainer_state.json";
constexpr std::string_view kShardedModel = "pytorch_model_fsdp_0";
constexpr std::string_view kWholeModel = "pytorch_model_fsdp.bin";
constexpr std::string_view kShardedOptimizer = "optimizer_0";
constexpr std::array<std::string_view, 2> kOptimizerFiles = {"optimizer.pt", "optimizer.bin"};
// What only these programs write. Beside one of them lie weights.
constexpr std::array<std::string_view, 8> kSignatures = {
    kTrainerState,   kWholeModel,     kShardedModel,   "optimizer.pt",
    "optimizer.bin", "rng_state.pth", "scheduler.bin", "random_states_0.pkl"};
// Shards that each rank has saved alone: LOCAL_STATE_DICT, or use_dcp=False.
constexpr std::array<std::string_view, 2> kRankShards = {"pytorch_model_fsdp_rank0.bin",
                                                         "pytorch_model_fsdp_0_rank0.bin"};
constexpr std::array<std::string_view, 5> kSecondModels = {
    "model_1.safetensors", "pytorch_model_1.bin", "pytorch_model_fsdp_1",
    "pytorch_model_fsdp_1.bin", "pytorch_model_1"};
constexpr std::array<std::string_view, 3> kSecondOptimizers = {"optimizer_1.bin", "optimizer_1",
                                                               "optimizer_1.pt"};

std::string inside_folder(const std::string& path, std::string_view name) {
  return fmt::format("{}/{}", path, name);
}

bool has_entry(const std::string& path, std::string_view name) {
  return path_exists(inside_folder(path, name));
}

// The first of the names that is there; "" if none is.
template <size_t N>
std::string first_entry(const std::string& path, const std::array<std::string_view, N>& names) {
  const auto found =
      std::ranges::find_if(names, [&](std::string_view name) { return has_entry(path, name); });
  return found == names.end() ? "" : std::string(*found);
}

bool has_deepspeed(const std::string& path) {
  return has_entry(path, "latest") && is_zero_checkpoint(path);
}

bool has_plain_weights(const std::string& path) {
  return is_safetensors(path) || is_pt(path) || is_peft(path);
}

NamedTensors read_plain_weights(const std::string& path) {
  if (is_huggingface(path)) return read_huggingface(path);
  if (is_safetensors(path)) return read_safetensors(path);
  return is_pt(path) ? read_pt(path) : read_peft(path);
}

NamedTensors read_folder_weights(const std::string& path) {
  if (has_deepspeed(path)) {
    if (has_plain_weights(path))
      log_info(
          "{}: the weights are DeepSpeed's fp32 master weights; those beside them, in the "
          "type of the training, are not read",
          path);
    return read_zero_checkpoint(path);
  }
  if (has_entry(path, kShardedModel)) return read_dcp(inside_folder(path, kShardedModel));
  if (has_entry(path, kWholeModel)) return read_pt(inside_folder(path, kWholeModel));
  return read_plain_weights(path);
}

void refuse_parts(const std::string& path) {
  if (const std::string second = first_entry(path, kSecondModels); !second.empty())
    fail(ErrorKind::kCorrupt,
         "read {}: it holds several models, such as {}; name the file or directory of one", path,
         second);
  if (const std::string shard = first_entry(path, kRankShards); !shard.empty())
    fail(ErrorKind::kCorrupt,
         "read {}: {} and its like are shards that each rank of FSDP has saved for itself, which "
         "do not tell their places in the tensors; save with SHARDED_STATE_DICT (by "
         "torch.distributed.checkpoint) or FULL_STATE_DICT",
         path, shard);
}

// The model's settings, where the weights do not come with them.
NamedTensors with_config_beside(const std::string& path, NamedTensors tensors) {
  const std::string file = inside_folder(path, "config.json");
  if (tensors.metadata.contains(kConfigText) || !path_exists(file)) return tensors;
  const std::string text = read_text(file, kMaxConfigJsonBytes);
  if (describe_obstacle(text, file).empty()) return as_model_of(path, std::move(tensors));
  tensors.metadata[kConfigText] = text;
  tensors.companions = companions_of(path);
  return tensors;
}

void take_global_step(const std::string& path, NamedTensors& tensors) {
  const std::string file = inside_folder(path, kTrainerState);
  if (tensors.step || !path_exists(file)) return;
  const std::string where = "read " + file;
  const Json state = parse_python_json(read_text(file, kMaxTrainerStateBytes), file);
  tensors.step = to_unsigned(member(state, "global_step", where), where);
}

}  // namespace

bool is_trainer_folder(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  if (!first_entry(path, kRankShards).empty()) return true;
  const bool is_deepspeeds = has_deepspeed(path);
  if (first_entry(path, kSignatures).empty())
    return is_deepspeeds && has_entry(path, "config.json");
  return is_deepspeeds || has_entry(path, kShardedModel) || has_entry(path, kWholeModel) ||
         has_plain_weights(path);
}

NamedTensors read_trainer_folder(const std::string& path) {
  refuse_parts(path);
  NamedTensors tensors = with_config_beside(path, read_folder_weights(path));
  take_global_step(path, tensors);
  if (const std::string second = first_entry(path, kSecondOptimizers); !second.empty())
    tensors.optimizer.lost.push_back(fmt::format("{}, a second optimizer", second));
  const std::string file = first_entry(path, kOptimizerFiles);
  if (has_deepspeed(path)) {
    // Its files have the optimizer.
  } else if (has_entry(path, kShardedOptimizer)) {
    add_optimizer_directory(inside_folder(path, kShardedOptimizer), tensors);
  } else if (!file.empty()) {
    add_optimizer_file(inside_folder(path, file), tensors);
  }
  tensors.format = "trainer";
  return tensors;
}

uint64_t verify_trainer_folder(const std::string& path) {
  uint64_t files = 0;
  for (const std::string_view name : {kShardedModel, kShardedOptimizer})
    if (has_entry(path, name)) files += verify_dcp(inside_folder(path, name));
  if (has_entry(path, kWholeModel)) files += verify_pt(inside_folder(path, kWholeModel));
  if (!is_safetensors(path) && is_pt(path)) files += verify_pt(path);
  const std::string optimizer = first_entry(path, kOptimizerFiles);
  if (!optimizer.empty()) files += verify_pt(inside_folder(path, optimizer));
  return files;
}

}  // namespace gxp
