#include "lib/arch/optimizer_state.h"

#include <array>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr KeptState kFirst = {"first moments", "adam_m"};
constexpr KeptState kSecond = {"second moments", "adam_v"};
constexpr KeptState kMomentum = {"momentum", "momentum"};

using States = std::vector<KeptState>;

struct Row {
  std::string_view name;
  States (*states)(const OptimConfig& optim);
};

States two_moments(const OptimConfig& /*optim*/) { return {kFirst, kSecond}; }
States momentum(const OptimConfig& /*optim*/) { return {kMomentum}; }
States sgd(const OptimConfig& optim) { return optim.momentum > 0 ? States{kMomentum} : States{}; }

constexpr std::array kRows = {Row{"adamw", two_moments}, Row{"adam", two_moments}, Row{"sgd", sgd},
                              Row{"lion", momentum}};

}  // namespace

std::vector<KeptState> kept_states(const OptimConfig& optim) {
  for (const Row& row : kRows) {
    if (row.name == optim.name) return row.states(optim);
  }
  fail(ErrorKind::kConfig, "optim.name: '{}' is unknown", optim.name);
}

}  // namespace gxp
