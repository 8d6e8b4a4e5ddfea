#include "lib/ckpt/trainer/meta_llama.h"

#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/base/json/json.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/torch/pt_file.h"

namespace gxp {
namespace {

constexpr uint64_t kMaxParamsBytes = uint64_t{1} << 20;

std::string rank_file(const std::string& path, int rank) {
  return fmt::format("{}/consolidated.{:02}.pth", path, rank);
}

std::string params_file(const std::string& path) { return path + "/params.json"; }

// The setting of a number in params.json, if it is there.
void take_param(const Json& params, const char* key, std::string_view setting, KeyValues& config) {
  const auto found = params.find(key);
  if (found != params.end() && found->is_number()) config.emplace_back(setting, found->dump());
}

}  // namespace

bool is_meta_llama(const std::string& path) {
  return path_exists(params_file(path)) && path_exists(rank_file(path, 0));
}

NamedTensors read_meta_llama(const std::string& path) {
  if (path_exists(rank_file(path, 1)))
    fail(ErrorKind::kCorrupt,
         "read {}: the tensors are split over the files of several tensor-parallel ranks "
         "(consolidated.01.pth), which gxp does not join; transformers' "
         "convert_llama_weights_to_hf.py makes a Hugging Face directory of them",
         path);
  NamedTensors tensors = read_pt(rank_file(path, 0));
  const std::string file = params_file(path);
  const Json params = parse_json(read_text(file, kMaxParamsBytes), file);
  to_object(params, "read " + file);
  take_param(params, "dim", "model.hidden", tensors.config);
  take_param(params, "n_layers", "model.layers", tensors.config);
  take_param(params, "n_heads", "model.heads", tensors.config);
  take_param(params, "n_kv_heads", "model.kv_heads", tensors.config);
  take_param(params, "norm_eps", "model.norm_eps", tensors.config);
  take_param(params, "rope_theta", "model.rope_theta", tensors.config);
  const Json scaled = params.value("use_scaled_rope", Json());  // from Llama 3.1 on
  if (scaled.is_boolean())
    tensors.config.emplace_back("model.rope_scaling", scaled == true ? "\"llama3\"" : "\"none\"");
  tensors.format = "meta-llama";
  return tensors;
}

}  // namespace gxp
