#include "lib/ckpt/huggingface.h"

#include <algorithm>

#include "lib/arch/architecture.h"
#include "lib/base/error.h"
#include "lib/ckpt/file.h"
#include "lib/ckpt/safetensors.h"

namespace gxp {
namespace {

constexpr std::string_view kPrefix = "transformer.";

std::string config_path(const std::string& directory) { return directory + "/config.json"; }

// "transformer.h.0.attn.c_attn.weight" for "h.0.attn.c_attn.weight" and the like.
bool lacks_prefix(std::string_view name) {
  return name == "wte.weight" || name == "wpe.weight" || name.starts_with("h.") ||
         name.starts_with("ln_f.");
}

bool is_mask(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

bool equal(const NamedTensor& a, const NamedTensor& b) {
  return a.info.shape == b.info.shape && a.info.dtype == b.info.dtype &&
         sha256_hex(a) == sha256_hex(b);
}

}  // namespace

bool is_huggingface(const std::string& path) {
  return path_exists(config_path(path)) && is_safetensors(path);
}

bool is_huggingface_file(std::string_view name) {
  return name == "config.json" || is_safetensors_file(name);
}

NamedTensors read_huggingface(const std::string& path) {
  NamedTensors result = read_safetensors(path);
  result.format = "huggingface";
  result.config = read_model_config(config_path(path));
  return result;
}

void write_huggingface(const NamedTensors& source, const std::string& directory,
                       uint64_t shard_bytes) {
  const ModelConfig model = model_of(source.config);
  const NamedTensors tensors = with_gpt2_names(source);
  NamedTensors wanted = {.tensors = {}, .config = source.config, .step = source.step};
  for (const UnitSpec& unit : make_architecture(model).units) {
    for (const TensorSpec& spec : unit.tensors)
      wanted.tensors.push_back(
          require_weight(tensors, spec.name, {spec.shape.begin(), spec.shape.end()}, "the source"));
  }
  write_safetensors_directory(wanted, directory, shard_bytes);
  write_text(config_path(directory), make_model_config(model, wanted.tensors.front().info.dtype));
}

NamedTensors with_gpt2_names(NamedTensors tensors) {
  if (find_tensor(tensors, "wte.weight") != nullptr) {
    for (NamedTensor& tensor : tensors.tensors) {
      if (lacks_prefix(tensor.info.name)) tensor.info.name.insert(0, kPrefix);
    }
  }
  const NamedTensor* table = find_tensor(tensors, "transformer.wte.weight");
  if (table == nullptr) return tensors;
  const NamedTensor* head = find_tensor(tensors, "lm_head.weight");
  if (head != nullptr && !equal(*head, *table))
    fail(ErrorKind::kConfig,
         "read GPT-2 weights: lm_head.weight is not transformer.wte.weight; an untied head is not "
         "supported");
  std::erase_if(tensors.tensors, [](const NamedTensor& tensor) {
    return tensor.info.name == "lm_head.weight" || is_mask(tensor.info.name);
  });
  return tensors;
}

}  // namespace gxp
