// Settings as text: for people, for the manifest of a checkpoint, for the man page.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/config/load.h"
#include "lib/config/run_config.h"

namespace gxp {

// TOML with every setting, each line with a comment that names the value's origin. It loads again
// to the same RunConfig.
std::string print_config(const LoadedConfig& loaded);

// Every setting as ("section.key", value as TOML writes it), in the order of declaration.
std::vector<std::pair<std::string, std::string>> flatten(const RunConfig& run);

// One subsection per section; per key: type, default, allowed values, meaning.
std::string settings_manual();

// `text` with everything escaped that roff would take for its own.
std::string to_roff(std::string_view text);

}  // namespace gxp
