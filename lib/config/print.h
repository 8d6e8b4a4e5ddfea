// A configuration as text: for people, for digests, for the manifest of a checkpoint.
#pragma once

#include <string>
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

// Equal for equal configurations: the hash of what flatten() returns.
std::string config_digest(const RunConfig& run);

}  // namespace gxp
