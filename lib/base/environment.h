// The environment variables as a value, so that what reads them can be tested without setenv().
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace gxp {

using Environment = std::map<std::string, std::string, std::less<>>;

// A copy of this process's variables. No other thread may call setenv() meanwhile.
Environment process_environment();

// The variable's value, or null. Set but empty counts as not set, as in most shells' tests.
const std::string* find_variable(const Environment& environment, std::string_view name);

// The folder of a user's caches: gxp in $XDG_CACHE_HOME, or in ~/.cache; "" without either.
std::string user_cache_folder(const Environment& environment);

}  // namespace gxp
