
#include <fnmatch.h>

#include <algorithm>

#include "lib/arch/family.h"
#include "lib/arch/gpt2.h"
#include "lib/arch/llama.h"
#include "lib/base/error.h"
#include "lib/base/find_row.h"
#include "lib/base/text/joined.h"

namespace gxp {
namespace {

bool matches(const std::string& pattern, const std::string& name) {
  if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
  for (const Family& family : families()) {
    const std::string_view model = family.huggingface.prefix;
    if (name.starts_with(model) && fnmatch(pattern.c_str(), name.c_str() + model.size(), 0) == 0)
      return true;
  }
  return false;
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      gpt2::family(),
      llama::family(),
  };
  return kFamilies;
}

bool Family::has(std::string_view key) const { return std::ranges::find(keys, key) != keys.end(); }

std::vector<std::string_view> family_names() { return row_names(families()); }

std::string families_in_words() { return joined(family_names(), " or "); }

std::vector<std::string_view> families_with(std::string_view key) {
  return rows_with(families(), key);
}

const Family& find_family(std::string_view name) {
  return find_row(families(), name, "model.family", ErrorKind::kConfig);
}

int64_t ModelConfig::mlp_width() const { return find_family(family).mlp_width(*this); }

Architecture make_architecture(const ModelConfig& config, DType compute, KeptOutputs kept) {
  return find_family(config.family).make(config, compute, kept);
}

void freeze(Architecture& architecture, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    bool found = false;
    for (UnitSpec& unit : architecture.units) {
      for (TensorSpec& tensor : unit.tensors) {
        if (!matches(pattern, tensor.name)) continue;
        tensor.frozen = true;
        found = true;
      }
    }
    if (!found)
      fail(ErrorKind::kConfig,
           "train.frozen '{}': matches none of the tensors {} to {}; gxp shard-plan --units lists "
           "them",
           pattern, architecture.units.front().tensors.front().name,
           architecture.units.back().tensors.back().name);
  }
  for (const UnitSpec& unit : architecture.units) {
    if (!unit.is_frozen()) return;
  }
  fail(ErrorKind::kConfig,
       "train.frozen: all tensors of the model are frozen, so there is nothing to train; leave out "
       "a pattern");
}

}  // namespace gxp
