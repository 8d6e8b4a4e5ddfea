// Words of users for one thing: a setting's or option's value as gxp spells it, and as others do.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace gxp {

// The one of `words` that `given` means: itself, the same in other case or with other hyphens
// ("Zero-3"), or another common name for it (bfloat16, half and torch.float32 of number types, fsdp
// of sharding strategies, hf of formats). Nothing if that is none or more than one of them.
std::optional<std::string_view> find_word(std::span<const std::string_view> words,
                                          std::string_view given);

}  // namespace gxp
