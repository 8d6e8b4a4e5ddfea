#include "lib/arch/frozen.h"

#include <fnmatch.h>

#include "lib/arch/family.h"
#include "lib/base/error.h"

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
