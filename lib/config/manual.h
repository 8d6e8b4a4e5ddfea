// The reference of all settings as roff, the generated part of gxp.toml.5.
#pragma once

#include <string>
#include <string_view>

namespace gxp {

// One subsection per section; per key: type, default, allowed values, meaning.
std::string settings_manual();

// `text` with everything escaped that roff would take for its own.
std::string to_roff(std::string_view text);

}  // namespace gxp
