#include "lib/tools/colltest/simulate/simulation_trace.h"

#include <nlohmann/json.hpp>

#include "lib/collective/algorithm/schedule.h"

namespace gxp {

std::string to_chrome_trace(const SimulationResult& result) {
  constexpr double kMicroseconds = 1e6;
  nlohmann::json events = nlohmann::json::array();
  for (const SimulatedStep& step : result.steps) {
    events.push_back({{"ph", "X"},
                      {"name", to_string(step.step)},
                      {"pid", 0},
                      {"tid", step.rank},
                      {"ts", step.begin_s * kMicroseconds},
                      {"dur", (step.end_s - step.begin_s) * kMicroseconds}});
  }
  return nlohmann::json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}}.dump();
}

}  // namespace gxp
