#include "lib/forecast/solve.h"

#include <algorithm>
#include <array>

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

// A program grows with the layers, and the time to build it with their square.
constexpr std::array kQuantities = {
    Quantity{"batch", "train.micro_batch", 1 << 20, set_batch},
    Quantity{"seq", "data.sequence", 1 << 20, set_sequence},
    Quantity{"layers", "model.layers", 512, set_layers},
};

}  // namespace

std::span<const Quantity> quantities() { return kQuantities; }

const Quantity& find_quantity(std::string_view name) {
  return find_row(kQuantities, name, "--solve");
}

Largest find_largest(const std::function<uint64_t(int)>& bytes_of, uint64_t limit_bytes, int most) {
  Largest largest{.bytes = bytes_of(1)};
  if (largest.bytes > limit_bytes) {
    largest.next_bytes = largest.bytes;
    return largest;
  }
  int low = 1;
  int high = 2;  // does not fit, or has not been tried
  const auto fits = [&](int value) {
    const uint64_t bytes = bytes_of(value);
    (bytes <= limit_bytes ? largest.bytes : largest.next_bytes) = bytes;
    return bytes <= limit_bytes;
  };
  while (high <= most && fits(high)) {
    low = high;
    high = low == most ? most + 1 : std::min(2 * low, most);
  }
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  largest.value = low;
  return largest;
}

}  // namespace gxp
