// Rules between several settings: heads divide hidden, a row fits the context, ...
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/config/run_config.h"

namespace gxp {

struct BrokenRule {
  std::string setting;  // the one to blame: "model.heads"
  std::string message;  // "must divide model.hidden (64), is 5"
};

// All rules that `run` breaks: those in rules.cc, and those of its family and its optimizer
// (lib/arch). A setting that only some families or optimizers have must not be set for another. A
// rule over a setting named in `unusable` ("section.key") is not judged: its value has been refused
// already.
std::vector<BrokenRule> broken_rules(const RunConfig& run,
                                     const std::set<std::string>& unusable = {});

}  // namespace gxp
