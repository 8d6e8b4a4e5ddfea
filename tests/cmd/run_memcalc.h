// gxp memcalc as tests run it.
#pragma once

#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/cmd/run_gxp.h"

namespace gxp {
using Json = nlohmann::json;

inline Outcome memcalc(Arguments arguments) {
  arguments.insert(arguments.begin(), "memcalc");
  return run_gxp(arguments);
}

inline Json memcalc_json(Arguments arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  const Outcome outcome = memcalc(arguments);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return Json::parse(outcome.out);
}

}  // namespace gxp
