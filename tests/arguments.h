// Arguments of a command line, and settings of a run.
#pragma once

#include <string>
#include <vector>

namespace gxp {

using Arguments = std::vector<std::string>;

inline Arguments operator+(Arguments first, const Arguments& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// "--set" before each of them.
inline Arguments set_all(const std::vector<std::string>& settings) {
  Arguments arguments;
  for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  return arguments;
}

}  // namespace gxp
