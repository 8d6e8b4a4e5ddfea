// Where every parameter lies: tensors to units to one flat buffer, and the flat buffer to buckets.
// Pure arithmetic over the architecture's table.
//
//   flat buffer   units in forward order; a unit's tensors are contiguous
//   tensor        starts at a multiple of kTensorAlignment elements
//   wrap          neighbouring units, padded to a multiple of kTensorAlignment * parts, so that it
//                 cuts into as many equal shards whatever the parameter count. Padding, which is
//                 the last unit's, is never used.
// Offsets and counts are in elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/base/range.h"

namespace gxp {

inline constexpr size_t kTensorAlignment = 16;  // elements: 64 bytes of f32, a cache line

struct UnitLayout {
  Range flat;                  // in the flat buffer, padding included
  std::vector<Range> tensors;  // in the flat buffer, in the order of UnitSpec::tensors, no padding
};

// Units first_unit to last_unit: gathered, reduced and cut into shards together (wrap.h).
struct Wrap {
  int first_unit = 0;
  int last_unit = 0;
  Range flat;
  // In a buffer of the gradients of all wraps: as many, or none if all tensors are frozen.
  Range gradients = {};
};

struct ParameterLayout {
  std::vector<UnitLayout> units;
  std::vector<Wrap> wraps;
  std::vector<int> wrap_of;   // by unit
  size_t count = 0;           // of the flat buffer, padding included
  size_t gradient_count = 0;  // of that of the gradients, likewise

  [[nodiscard]] const Wrap& wrap_of_unit(int unit) const {
    return wraps[size_t(wrap_of[size_t(unit)])];
  }
};

// For up to `parts` ranks, a divisor of which a wrap can be cut into; the world size, or a
// multiple. A wrap begins at each of `first_units`, which ascend from 0; without them at every
// unit.
ParameterLayout make_layout(const Architecture& architecture, int parts,
                            const std::vector<int>& first_units = {});

// Gradients that are reduced together: of units first_unit to last_unit, one range of the
// gradients.
struct Bucket {
  int first_unit = 0;
  int last_unit = 0;
  Range flat;
};

// Cuts the units, from the last to the first (the order in which backward finishes them), into
// buckets that are closed as soon as they hold `bucket_bytes` of gradients. A wrap is never
// split, and one without gradients left out.
std::vector<Bucket> make_buckets(const ParameterLayout& layout, uint64_t bucket_bytes,
                                 size_t element_bytes = sizeof(float));

// Shard `shard` of a range that is cut into `shards` equal parts, which a wrap's is.
Range shard_of(const Range& flat, int shards, int shard);

// Where a wrap's shard lies in a buffer that holds one shard of each wrap, in forward order.
Range place_in_shard(const Range& flat, int shards);

// The part of a tensor that lies in one shard.
struct TensorPart {
  int unit = 0;
  int tensor = 0;      // of the unit
  Range elements;      // of the tensor
  size_t in_flat = 0;  // where it begins in the flat buffer
};

// What shard `shard` holds of the tensors when every wrap is cut into `shards` parts, in forward
// order. One shard holds all tensors whole. Parts begin at multiples of kTensorAlignment elements
// of their tensor, since `shards` divides the layout's parts.
std::vector<TensorPart> make_parts(const ParameterLayout& layout, int shards, int shard);

// Those of tensors that are not frozen.
std::vector<TensorPart> trainable_parts(const Architecture& architecture,
                                        std::vector<TensorPart> parts);

// Where such a part begins in a buffer that holds one of `shards` shards of each wrap, in forward
// order, and the part with it: `shards` divides the number that it was cut for. And where its
// gradients begin in a buffer of those.
size_t begin_in_shard(const ParameterLayout& layout, const TensorPart& part, int shards);
size_t begin_of_gradients(const ParameterLayout& layout, const TensorPart& part, int shards);

// The chunk of `count` elements that `rank` owns when they are dealt out evenly: the first
// count % world_size ranks get one more.
Range owned_range(size_t count, int world_size, int rank);

}  // namespace gxp
