// Why a job ends: the first cause, the same for all ranks.
#pragma once

#include <string>

namespace gxp {

struct Verdict {
  int rank = 0;        // the culprit
  std::string reason;  // in words that follow "rank 2: "
};

}  // namespace gxp
