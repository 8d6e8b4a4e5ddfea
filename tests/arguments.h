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

}  // namespace gxp
