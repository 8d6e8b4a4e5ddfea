// A set of layers as users write it: "0-2,5". Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gxp {

// By layer, whether it is in the set; "all" has all, "" none. Nothing if the text is no such list,
// or names a layer that is not below `layers`.
std::optional<std::vector<bool>> parse_layers(std::string_view text, int layers);

// The shortest text that parse_layers() reads so.
std::string layers_in_words(const std::vector<bool>& in_set);

}  // namespace gxp
