#include "lib/ckpt/huggingface/parameter_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lib/arch/architecture.h"
#include "lib/arch/family.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

// The modules of a block; names that a family does not have are not met.
std::vector<std::string_view> block_modules(const Family& family) {
  const DecoderNames& n = family.names;
  if (family.kind.qkv == QkvTensors::kBlocks)
    return {n.before_1, n.qkv, n.output, n.before_2, n.up, n.down};
  if (family.kind.qkv == QkvTensors::kPerHead)
    return {n.before_1, n.before_2, n.qkv, n.output, n.up, n.down};
  return {n.query, n.key,     n.value, n.output,   n.qkv,     n.query_norm, n.key_norm, n.gate,
          n.up,    n.gate_up, n.down,  n.before_1, n.after_1, n.before_2,   n.after_2};
}

// The place of "model.layers.3.mlp.up_proj.weight" among the modules; a weight comes before its
// bias.
size_t rank_in_block(std::string_view name, const std::vector<std::string_view>& modules) {
  const bool is_bias = name.ends_with(".bias");
  const std::string_view module = name.substr(0, name.rfind('.'));
  for (size_t i = 0; i < modules.size(); ++i) {
    if (!modules[i].empty() && module.ends_with(fmt::format(".{}", modules[i])))
      return 2 * i + size_t(is_bias);
  }
  GXP_ASSERT(false);  // the architecture's names are the family's
}

}  // namespace

std::vector<std::string> parameter_order(const ModelConfig& model) {
  const std::vector<std::string_view> modules = block_modules(find_family(model.family));
  std::vector<std::string> names;
  for (const UnitSpec& unit : make_architecture(model).units) {
    const auto begin = std::ptrdiff_t(names.size());
    for (const TensorSpec& tensor : unit.tensors) names.push_back(tensor.name);
    if (unit.kind != UnitKind::kBlock) continue;
    std::ranges::sort(names.begin() + begin, names.end(), {},
                      [&](const std::string& name) { return rank_in_block(name, modules); });
  }
  return names;
}

}  // namespace gxp
