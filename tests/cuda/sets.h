// Settings of a run as lists, "train.precision=bf16", that are joined by +.
#pragma once

#include <string>
#include <vector>

namespace gxp {

using Sets = std::vector<std::string>;

inline Sets operator+(Sets a, const Sets& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace gxp
