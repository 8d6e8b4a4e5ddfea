#include "lib/shard/layout.h"

#include <algorithm>

#include "lib/base/bytes.h"

namespace gxp {

ParameterLayout make_layout(const Architecture& architecture, int parts) {
  ParameterLayout layout;
  const size_t unit_step = kTensorAlignment * static_cast<size_t>(parts);
  for (const UnitSpec& unit : architecture.units) {
    UnitLayout place;
    size_t end = layout.count;
    for (const TensorSpec& tensor : unit.tensors) {
      const size_t begin = round_up(end - layout.count, kTensorAlignment) + layout.count;
      place.tensors.push_back({begin, tensor.count()});
      end = begin + tensor.count();
    }
    place.flat = {layout.count, round_up(end - layout.count, unit_step)};
    layout.count = place.flat.end();
    layout.units.push_back(std::move(place));
  }
  return layout;
}

std::vector<Bucket> make_buckets(const ParameterLayout& layout, uint64_t bucket_bytes) {
  std::vector<Bucket> buckets;
  bool open = false;
  for (int unit = int(layout.units.size()) - 1; unit >= 0; --unit) {
    const Range& flat = layout.units[static_cast<size_t>(unit)].flat;
    if (!open) buckets.push_back({unit, unit, {flat.end(), 0}});
    Bucket& bucket = buckets.back();
    bucket.first_unit = unit;
    bucket.flat = {flat.begin, bucket.flat.end() - flat.begin};
    open = bucket.flat.count * sizeof(float) < bucket_bytes;
  }
  return buckets;
}

Range shard_of(const Range& flat, int shards, int shard) {
  const size_t count = flat.count / size_t(shards);
  return {flat.begin + count * size_t(shard), count};
}

Range place_in_shard(const Range& flat, int shards) {
  return {flat.begin / size_t(shards), flat.count / size_t(shards)};
}

std::vector<TensorPart> make_parts(const ParameterLayout& layout, int shards, int shard) {
  std::vector<TensorPart> parts;
  for (size_t unit = 0; unit < layout.units.size(); ++unit) {
    const UnitLayout& place = layout.units[unit];
    const Range own = shard_of(place.flat, shards, shard);
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

size_t begin_in_shard(const ParameterLayout& layout, const TensorPart& part, int shards) {
  const Range& unit = layout.units[size_t(part.unit)].flat;
  const Range place = place_in_shard(unit, shards);
  return place.begin + (part.in_flat - unit.begin) % place.count;
}

Range owned_range(size_t count, int world_size, int rank) {
  const auto n = static_cast<size_t>(world_size);
  const auto r = static_cast<size_t>(rank);
  const size_t share = count / n;
  const size_t rest = count % n;
  return {r * share + std::min(r, rest), share + (r < rest ? 1 : 0)};
}

}  // namespace gxp
