#include "lib/base/environment.h"

#include <unistd.h>

namespace gxp {

Environment process_environment() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

const std::string* find_variable(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? nullptr : &found->second;
}

std::string user_cache_folder(const Environment& environment) {
  if (const std::string* folder = find_variable(environment, "XDG_CACHE_HOME"))
    return *folder + "/gxp";
  if (const std::string* home = find_variable(environment, "HOME")) return *home + "/.cache/gxp";
  return "";
}

}  // namespace gxp
