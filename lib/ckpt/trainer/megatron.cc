#include "lib/ckpt/trainer/megatron.h"

#include <filesystem>

#include "lib/base/error.h"
#include "lib/ckpt/file.h"

namespace gxp {
namespace fs = std::filesystem;

bool is_megatron(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  if (path_exists(path + "/latest_checkpointed_iteration.txt")) return true;
  if (path_exists(path + "/.metadata") && path_exists(path + "/common.pt")) return true;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.starts_with("mp_rank_") && path_exists(entry->path() / "model_optim_rng.pt"))
      return true;
  }
  return false;
}

NamedTensors read_megatron(const std::string& path) {
  fail(
      ErrorKind::kCorrupt,
      "read {}: it is a checkpoint of Megatron-LM, which gxp does not convert: queries, keys and "
      "values are one matrix there, split among its ranks; Megatron Bridge "
      "(AutoBridge.export_ckpt) "
      "or Megatron-LM's tools/checkpoint/convert.py make a Hugging Face directory of it, which gxp "
      "reads",
      path);
}

}  // namespace gxp
