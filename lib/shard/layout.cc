#include "lib/shard/layout.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "lib/base/bytes.h"

namespace gxp {
namespace {

// `begin`, and the end of what is placed, are multiples of `alignment`.
UnitLayout place_unit(const UnitSpec& unit, size_t begin, size_t alignment) {
  UnitLayout place;
  size_t end = begin;
  for (const TensorSpec& tensor : unit.tensors) {
    place.tensors.push_back({end, tensor.count()});
    end = round_up(end + tensor.count(), alignment);
  }
  place.flat = {begin, end - begin};
  return place;
}

// Once the FSDP units are known.
void place_gradients(const Architecture& architecture, ParameterLayout& layout) {
  for (FsdpUnit& wrap : layout.wraps) {
    bool is_frozen = true;
    for (int unit = wrap.first_unit; unit <= wrap.last_unit; ++unit)
      is_frozen = is_frozen && architecture.units[size_t(unit)].is_frozen();
    wrap.gradients = {layout.gradient_count, is_frozen ? 0 : wrap.flat.count};
    layout.gradient_count = wrap.gradients.end();
  }
}

Range equal_part(const Range& range, int parts, int part) {
  const size_t count = range.count / size_t(parts);
  return {range.begin + count * size_t(part), count};
}

size_t count_of(const Architecture& architecture, const KeptState& state, const TensorPart& part) {
  const UnitSpec& unit = architecture.units[size_t(part.unit)];
  const std::vector<size_t> shape = state.shape(unit, unit.tensors[size_t(part.tensor)]);
  if (shape.empty()) return 0;
  if (!state.everywhere) return state.of(part.elements).count;
  return std::accumulate(shape.begin(), shape.end(), size_t{1}, std::multiplies<>());
}

}  // namespace

ParameterLayout make_layout(const Architecture& architecture, int parts,
                            const std::vector<int>& first_units, size_t block) {
  ParameterLayout layout;
  const size_t alignment = std::max(kTensorAlignment, block);
  const size_t wrap_step = alignment * static_cast<size_t>(parts);
  const int units = int(architecture.units.size());
  for (int unit = 0; unit < units; ++unit) {
    const auto begins = [&](int at) {
      return first_units.empty() || std::ranges::binary_search(first_units, at);
    };
    if (begins(unit)) layout.wraps.push_back({unit, unit, {layout.count, 0}});
    FsdpUnit& wrap = layout.wraps.back();
    UnitLayout place = place_unit(architecture.units[size_t(unit)], layout.count, alignment);
    wrap.last_unit = unit;
    wrap.flat.count = place.flat.end() - wrap.flat.begin;
    if (unit + 1 == units || begins(unit + 1))
      wrap.flat.count = round_up(wrap.flat.count, wrap_step);
    place.flat.count = wrap.flat.end() - place.flat.begin;
    layout.count = wrap.flat.end();
    layout.units.push_back(std::move(place));
    layout.wrap_of.push_back(int(layout.wraps.size()) - 1);
  }
  place_gradients(architecture, layout);
  return layout;
}

std::vector<Bucket> make_buckets(const ParameterLayout& layout, uint64_t bucket_bytes,
                                 size_t element_bytes) {
  std::vector<Bucket> buckets;
  bool open = false;
  for (size_t i = layout.wraps.size(); i-- > 0;) {
    const FsdpUnit& wrap = layout.wraps[i];
    if (wrap.gradients.count == 0) continue;
    if (!open) buckets.push_back({wrap.first_unit, wrap.last_unit, {wrap.gradients.end(), 0}});
    Bucket& bucket = buckets.back();
    bucket.first_unit = wrap.first_unit;
    bucket.flat = {wrap.gradients.begin, bucket.flat.end() - wrap.gradients.begin};
    open = bucket.flat.count * element_bytes < bucket_bytes;
  }
  return buckets;
}

std::vector<TensorPart> make_parts(const ParameterLayout& layout, int shards, int shard) {
  std::vector<TensorPart> parts;
  for (size_t unit = 0; unit < layout.units.size(); ++unit) {
    const UnitLayout& place = layout.units[unit];
    const Range own = equal_part(layout.wrap_of_unit(int(unit)).flat, shards, shard);
    for (size_t i = 0; i < place.tensors.size(); ++i) {
      const Range& tensor = place.tensors[i];
      const size_t begin = std::max(own.begin, tensor.begin);
      const size_t end = std::min(own.end(), tensor.end());
      if (begin >= end) continue;
      parts.push_back({int(unit), int(i), {begin - tensor.begin, end - begin}, begin});
    }
  }
  return parts;
}

std::vector<TensorPart> trainable_parts(const Architecture& architecture,
                                        std::vector<TensorPart> parts) {
  std::erase_if(parts, [&](const TensorPart& part) {
    return architecture.units[size_t(part.unit)].tensors[size_t(part.tensor)].frozen;
  });
  return parts;
}

Range ShardRanges::wrap(int wrap) const {
  const Range& whole = layout_->wraps[size_t(wrap)].*whole_;
  return {whole.begin / shards_, whole.count / shards_};
}

Range ShardRanges::part(const TensorPart& part) const {
  const Range shard = wrap(layout_->wrap_of[size_t(part.unit)]);
  const size_t in_wrap = part.in_flat - layout_->wrap_of_unit(part.unit).flat.begin;
  return {shard.begin + in_wrap % shard.count, part.elements.count};
}

Range owned_range(size_t count, int world_size, int rank) {
  const auto n = static_cast<size_t>(world_size);
  const auto r = static_cast<size_t>(rank);
  const size_t share = count / n;
  const size_t rest = count % n;
  return {r * share + std::min(r, rest), share + (r < rest ? 1 : 0)};
}

std::vector<Range> place_state(const Architecture& architecture, const ParameterLayout& layout,
                               const KeptState& state, std::span<const TensorPart> parts,
                               int shards) {
  const ShardRanges shard = ShardRanges::of_parameters(layout, shards);
  std::vector<Range> places;
  size_t next = 0;
  for (const TensorPart& part : parts) {
    if (state.of_all) {
      places.push_back(state.of(shard.part(part)));
      continue;
    }
    places.push_back({next, count_of(architecture, state, part)});
    next = round_up(places.back().end(), kTensorAlignment);
  }
  return places;
}

size_t state_count(const Architecture& architecture, const ParameterLayout& layout,
                   const KeptState& state, int shards) {
  if (state.of_all) return layout.count / size_t(shards) / state.block;
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
