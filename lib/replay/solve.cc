#include "lib/replay/solve.h"

#include <algorithm>
#include <array>

#include "lib/arch/architecture.h"
#include "lib/base/find_row.h"

namespace gxp {
namespace {

void set_batch(RunConfig& config, int value) { config.train.micro_batch = value; }

// The model must have that many positions, too.
void set_sequence(RunConfig& config, int value) {
  config.data.sequence = value;
  config.model.context = std::max(config.model.context, value);
}

void set_layers(RunConfig& config, int value) { config.model.layers = value; }

int least_number(const RunConfig& /*config*/) { return 1; }

// Patterns may name late units, without which the run is refused.
int least_layers(const RunConfig& config) {
  RunConfig fewer = config;
  const auto all_match = [&](int layers) {
    fewer.model.layers = layers;
    const Architecture architecture = make_architecture(fewer.model);
    const auto matches = [&](const std::string& pattern) {
      return !units_matching(architecture, pattern).empty();
    };
    return std::ranges::all_of(config.train.recompute_units, matches) &&
           std::ranges::all_of(config.parallel.wrap_units, matches);
  };
  int layers = 1;
  while (layers < config.model.layers && !all_match(layers)) ++layers;
  return layers;
}

// A program grows with the layers, and the time to build it with their square.
constexpr std::array kRunQuantities = {
    Quantity<RunConfig>{"batch", "train.micro_batch", 1 << 20, least_number, set_batch},
    Quantity<RunConfig>{"seq", "data.sequence", 1 << 20, least_number, set_sequence},
    Quantity<RunConfig>{"layers", "model.layers", 512, least_layers, set_layers},
};

}  // namespace

std::span<const Quantity<RunConfig>> run_quantities() { return kRunQuantities; }

const Quantity<RunConfig>& find_run_quantity(std::string_view name) {
  return find_row(kRunQuantities, name, "--solve");
}

}  // namespace gxp
