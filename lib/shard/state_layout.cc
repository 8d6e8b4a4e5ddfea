#include "lib/shard/state_layout.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "lib/base/bytes.h"

namespace gxp {
namespace {

size_t count_of(const Architecture& architecture, const KeptState& state, const TensorPart& part) {
  const UnitSpec& unit = architecture.units[size_t(part.unit)];
  const std::vector<size_t> shape = state.shape(unit, unit.tensors[size_t(part.tensor)]);
  if (shape.empty()) return 0;
  if (!state.everywhere) return part.elements.count;
  return std::accumulate(shape.begin(), shape.end(), size_t{1}, std::multiplies<>());
}

}  // namespace

std::vector<Range> place_state(const Architecture& architecture, const ParameterLayout& layout,
                               const KeptState& state, std::span<const TensorPart> parts,
                               int shards) {
  const ShardPlaces shard = ShardPlaces::of_parameters(layout, shards);
  std::vector<Range> places;
  size_t next = 0;
  for (const TensorPart& part : parts) {
    if (state.of_all) {
      places.push_back(shard.part(part));
      continue;
    }
    places.push_back({next, count_of(architecture, state, part)});
    next = round_up(places.back().end(), kTensorAlignment);
  }
  return places;
}

size_t state_count(const Architecture& architecture, const ParameterLayout& layout,
                   const KeptState& state, int shards) {
  if (state.of_all) return layout.count / size_t(shards);
  if (state.everywhere) shards = 1;
  size_t most = 0;
  for (int shard = 0; shard < shards; ++shard) {
    const auto parts = make_parts(layout, shards, shard);
    const auto places = place_state(architecture, layout, state, parts, shards);
    if (!places.empty()) most = std::max(most, round_up(places.back().end(), kTensorAlignment));
  }
  return most;
}

}  // namespace gxp
