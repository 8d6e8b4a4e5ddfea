#include "lib/ckpt/huggingface/wrapped_names.h"

#include <array>
#include <set>
#include <string>
#include <string_view>

namespace gxp {
namespace {

std::string without_wrappers(std::string name) {
  constexpr std::array<std::string_view, 5> kWrappers = {
      "module.", "_orig_mod.", "_forward_module.", "_fsdp_wrapped_module.",
      "_checkpoint_wrapped_module."};
  for (const std::string_view wrapper : kWrappers) {
    for (size_t at = 0; (at = name.find(wrapper, at)) != std::string::npos;) {
      const bool begins_part = at == 0 || name[at - 1] == '.';
      if (begins_part)
        name.erase(at, wrapper.size());
      else
        at += wrapper.size();
    }
  }
  return name;
}

}  // namespace

void unwrap_names(NamedTensors& tensors) {
  std::set<std::pair<Role, std::string>> names;
  for (const NamedTensor& tensor : tensors.tensors)
    if (!names.emplace(tensor.info.role, without_wrappers(tensor.info.name)).second) return;
  for (NamedTensor& tensor : tensors.tensors)
    tensor.info.name = without_wrappers(std::move(tensor.info.name));
  rename_record(tensors.optimizer,
                [](const std::string& name) { return std::optional(without_wrappers(name)); });
}

}  // namespace gxp
