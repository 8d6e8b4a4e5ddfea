#include "lib/shard/layout.h"

#include <algorithm>

#include "lib/base/bytes.h"

namespace gxp {
namespace {

// From a multiple of kTensorAlignment on, and up to one.
UnitLayout place_unit(const UnitSpec& unit, size_t begin) {
  UnitLayout place;
  size_t end = begin;
  for (const TensorSpec& tensor : unit.tensors) {
    place.tensors.push_back({end, tensor.count()});
    end = round_up(end + tensor.count(), kTensorAlignment);
  }
  place.flat = {begin, end - begin};
  return place;
}

// Once the wraps are known.
void place_gradients(const Architecture& architecture, ParameterLayout& layout) {
  for (Wrap& wrap : layout.wraps) {
    bool is_frozen = true;
    for (int unit = wrap.first_unit; unit <= wrap.last_unit; ++unit)
      is_frozen = is_frozen && architecture.units[size_t(unit)].is_frozen();
    wrap.gradients = {layout.gradient_count, is_frozen ? 0 : wrap.flat.count};
    layout.gradient_count = wrap.gradients.end();
  }
}

// Of the range that the part's wrap has in a buffer of whole wraps.
size_t begin_in(const ParameterLayout& layout, const TensorPart& part, const Range& range,
                int shards) {
  const Range place = place_in_shard(range, shards);
  return place.begin + (part.in_flat - layout.wrap_of_unit(part.unit).flat.begin) % place.count;
}

}  // namespace

ParameterLayout make_layout(const Architecture& architecture, int parts,
                            const std::vector<int>& first_units) {
  ParameterLayout layout;
  const size_t wrap_step = kTensorAlignment * static_cast<size_t>(parts);
  const int units = int(architecture.units.size());
  for (int unit = 0; unit < units; ++unit) {
    const auto begins = [&](int at) {
      return first_units.empty() || std::ranges::binary_search(first_units, at);
    };
    if (begins(unit)) layout.wraps.push_back({unit, unit, {layout.count, 0}});
    Wrap& wrap = layout.wraps.back();
    UnitLayout place = place_unit(architecture.units[size_t(unit)], layout.count);
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
    const Wrap& wrap = layout.wraps[i];
    if (wrap.gradients.count == 0) continue;
    if (!open) buckets.push_back({wrap.first_unit, wrap.last_unit, {wrap.gradients.end(), 0}});
    Bucket& bucket = buckets.back();
    bucket.first_unit = wrap.first_unit;
    bucket.flat = {wrap.gradients.begin, bucket.flat.end() - wrap.gradients.begin};
    open = bucket.flat.count * element_bytes < bucket_bytes;
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
    const Range own = shard_of(layout.wrap_of_unit(int(unit)).flat, shards, shard);
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

size_t begin_in_shard(const ParameterLayout& layout, const TensorPart& part, int shards) {
  return begin_in(layout, part, layout.wrap_of_unit(part.unit).flat, shards);
}

size_t begin_of_gradients(const ParameterLayout& layout, const TensorPart& part, int shards) {
  return begin_in(layout, part, layout.wrap_of_unit(part.unit).gradients, shards);
}

Range owned_range(size_t count, int world_size, int rank) {
  const auto n = static_cast<size_t>(world_size);
  const auto r = static_cast<size_t>(rank);
  const size_t share = count / n;
  const size_t rest = count % n;
  return {r * share + std::min(r, rest), share + (r < rest ? 1 : 0)};
}

}  // namespace gxp
