#include "lib/shard/layout.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "lib/base/bytes.h"

namespace gxp {
namespace {

// Places tensors of neighbouring units behind what the layout has.
class Placement {
 public:
  Placement(const Architecture& architecture, size_t alignment, int parts)
      : architecture_(architecture), alignment_(alignment), parts_(size_t(parts)) {
    for (const UnitSpec& unit : architecture.units)
      layout_.units.push_back({.tensors = std::vector<Range>(unit.tensors.size())});
  }

  // The units' tensors that are frozen, or those that are not, as one FSDP unit if there are any.
  void add_wrap(int first_unit, int last_unit, bool frozen) {
    UnitPart UnitLayout::*const part = frozen ? &UnitLayout::frozen : &UnitLayout::trained;
    const size_t begin = end_;
    FsdpUnit wrap{.first_unit = -1, .flat = {}, .frozen = frozen};
    for (int unit = first_unit; unit <= last_unit; ++unit) {
      const Range flat = place_tensors(unit, frozen);
      if (flat.count == 0) continue;
      layout_.units[size_t(unit)].*part = {int(layout_.wraps.size()), flat};
      if (wrap.first_unit < 0) wrap.first_unit = unit;
      wrap.last_unit = unit;
    }
    if (wrap.first_unit < 0) return;
    wrap.flat = {begin, round_up(end_ - begin, alignment_ * parts_)};
    end_ = wrap.flat.end();
    Range& last = (layout_.units[size_t(wrap.last_unit)].*part).flat;
    last.count = end_ - last.begin;
    layout_.wraps.push_back(wrap);
  }
  // All that follows is frozen.
  void end_trained() {
    layout_.trained_count = end_;
    const auto has_frozen = [](const UnitSpec& unit) {
      return unit.trainable_count() < unit.parameter_count();
    };
    if (std::ranges::any_of(architecture_.units, has_frozen))
      end_ = round_up(end_, kFrozenAlignment * parts_);
  }

  ParameterLayout finish() && {
    layout_.count = end_;
    return std::move(layout_);
  }

 private:
  Range place_tensors(int unit, bool frozen) {
    const std::vector<TensorSpec>& tensors = architecture_.units[size_t(unit)].tensors;
    const size_t begin = end_;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].frozen != frozen) continue;
      layout_.units[size_t(unit)].tensors[i] = {end_, tensors[i].count()};
      end_ = round_up(end_ + tensors[i].count(), alignment_);
    }
    return {begin, end_ - begin};
  }

  const Architecture& architecture_;
  const size_t alignment_, parts_;
  size_t end_ = 0;  // a multiple of the alignment
  ParameterLayout layout_;
};

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
  Placement placement(architecture, std::max(kTensorAlignment, block), parts);
  const int units = int(architecture.units.size());
  const auto begins = [&](int unit) {
    return first_units.empty() || std::ranges::binary_search(first_units, unit);
  };
  const auto add_wraps = [&](bool frozen) {
    for (int first = 0, last = 0; first < units; first = ++last) {
      while (last + 1 < units && !begins(last + 1)) ++last;
      placement.add_wrap(first, last, frozen);
    }
  };
  add_wraps(false);
  placement.end_trained();
  add_wraps(true);
  return std::move(placement).finish();
}

std::vector<Bucket> make_buckets(const ParameterLayout& layout, uint64_t bucket_bytes,
                                 size_t element_bytes) {
  std::vector<Bucket> buckets;
  bool open = false;
  for (size_t i = layout.wraps.size(); i-- > 0;) {
    const FsdpUnit& wrap = layout.wraps[i];
    if (wrap.frozen) continue;
    if (!open) buckets.push_back({wrap.first_unit, wrap.last_unit, {wrap.flat.end(), 0}});
    Bucket& bucket = buckets.back();
    bucket.first_unit = wrap.first_unit;
    bucket.flat = {wrap.flat.begin, bucket.flat.end() - wrap.flat.begin};
    open = bucket.flat.count * element_bytes < bucket_bytes;
  }
  return buckets;
}

std::vector<TensorPart> make_parts(const ParameterLayout& layout, int shards, int shard) {
  std::vector<TensorPart> parts;
  for (size_t unit = 0; unit < layout.units.size(); ++unit) {
    const UnitLayout& place = layout.units[unit];
    for (size_t i = 0; i < place.tensors.size(); ++i) {
      const Range& tensor = place.tensors[i];
      const Range& whole = layout.wraps[size_t(place.part_with(int(i)).wrap)].flat;
      const Range own = equal_part(whole, shards, shard);
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
  const Range& whole = layout_->wraps[size_t(wrap)].flat;
  return {whole.begin / shards_, whole.count / shards_};
}

Range ShardRanges::part(const TensorPart& part) const {
  const int wrap = layout_->wrap_of(part);
  const Range shard = this->wrap(wrap);
  const size_t in_wrap = part.in_flat - layout_->wraps[size_t(wrap)].flat.begin;
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
  const ShardRanges shard(layout, shards);
  std::vector<Range> places;
  size_t next = 0;
  for (const TensorPart& part : parts) {
    if (state.of_all) {
      const bool frozen = layout.wraps[size_t(layout.wrap_of(part))].frozen;
      places.push_back(frozen ? Range{} : state.of(shard.part(part)));
      continue;
    }
    places.push_back({next, count_of(architecture, state, part)});
    next = round_up(places.back().end(), kTensorAlignment);
  }
  return places;
}

size_t state_count(const Architecture& architecture, const ParameterLayout& layout,
                   const KeptState& state, int shards) {
  if (state.of_all) return layout.trained_count / size_t(shards) / state.block;
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
