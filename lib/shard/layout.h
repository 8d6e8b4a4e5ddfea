// The layout of the parameters: tensors in units in one flat buffer, and the flat buffer in
// buckets. Pure arithmetic over the architecture's table.
//
//   flat buffer   FSDP units in forward order: first those that are trained, then those that are
//                 frozen. A buffer of the trained ones alone, such as that of the gradients, has
//                 them at the same places. The frozen part of a shard begins at a multiple of
//                 kFrozenAlignment
//   FSDP unit     tensors of neighbouring units, in forward order: those that are trained, or those
//                 that are frozen. It is padded to a multiple of alignment * parts, so that it cuts
//                 into as many equal shards whatever the parameter count. Padding, which is the
//                 last unit's, is never used.
//   tensor        starts at a multiple of `alignment` elements, usually kTensorAlignment
// Offsets and counts are in elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/arch/architecture.h"
#include "lib/arch/optimizers.h"
#include "lib/base/range.h"

namespace gxp {

inline constexpr size_t kTensorAlignment = 16;  // elements: 64 bytes of f32, a cache line
// Elements: a whole block of offloaded memory, so that no block has both kinds.
inline constexpr size_t kFrozenAlignment = 2048;

// A unit's tensors in an FSDP unit, which are contiguous there.
struct UnitPart {
  int wrap = -1;    // of ParameterLayout::wraps; -1: there are no such tensors
  Range flat = {};  // in the flat buffer, padding included
};

struct UnitLayout {
  UnitPart trained = {}, frozen = {};
  std::vector<Range> tensors =
      {};  // in the flat buffer, in the order of UnitSpec::tensors, no padding

  [[nodiscard]] const UnitPart& part_with(int tensor) const {
    const size_t begin = tensors[size_t(tensor)].begin;
    const bool trains = begin >= trained.flat.begin && begin < trained.flat.end();
    return trains ? trained : frozen;
  }
};

// Tensors of units first_unit to last_unit that are gathered, reduced and cut into shards together
// (wrap.h). Both units have such tensors.
struct FsdpUnit {
  int first_unit = 0;
  int last_unit = 0;
  Range flat;
  bool frozen = false;
};

// A part of one tensor: the elements that lie in one shard.
struct TensorPart {
  int unit = 0;
  int tensor = 0;      // of the unit
  Range elements;      // of the tensor
  size_t in_flat = 0;  // where the part begins in the flat buffer
};

struct ParameterLayout {
  std::vector<UnitLayout> units;
  std::vector<FsdpUnit> wraps;  // in the order of the flat buffer
  size_t count = 0;             // of the flat buffer, padding included
  size_t trained_count = 0;     // of its trained FSDP units, padding included

  [[nodiscard]] int wrap_of(const TensorPart& part) const {
    return units[size_t(part.unit)].part_with(part.tensor).wrap;
  }
};

// An FSDP unit can be cut into any divisor of `parts`, which is the world size or a multiple of it.
// One begins at each of `first_units`, which ascend from 0; without them at every unit: two if some
// of its tensors are frozen and some are not. No shard's border cuts a block of `block` elements of
// a tensor, which is a multiple of kTensorAlignment or a divisor.
ParameterLayout make_layout(const Architecture& architecture, int parts,
                            const std::vector<int>& first_units = {}, size_t block = 1);

// Gradients that are reduced together: of units first_unit to last_unit, one range of the
// gradients.
struct Bucket {
  int first_unit = 0;
  int last_unit = 0;
  Range flat;
};

// Cuts the units, from the last to the first (the order in which backward finishes them), into
// buckets that are closed as soon as they hold `bucket_bytes` of gradients. An FSDP unit is never
// split; frozen ones are left out.
std::vector<Bucket> make_buckets(const ParameterLayout& layout, uint64_t bucket_bytes,
                                 size_t element_bytes = sizeof(float));

// The parts of tensors in shard `shard` when every FSDP unit is cut into `shards` equal parts, in
// forward order. One shard holds all tensors whole. Parts begin at multiples of the layout's
// alignment in their tensor, since `shards` divides the layout's parts.
std::vector<TensorPart> make_parts(const ParameterLayout& layout, int shards, int shard);

// The parts of tensors that are not frozen.
std::vector<TensorPart> trainable_parts(const Architecture& architecture,
                                        std::vector<TensorPart> parts);

// The ranges of a buffer that holds one of `shards` equal parts of every FSDP unit, in forward
// order; with 1 shard the ranges of the flat buffer itself. They are the same on every rank. The
// layout outlives this.
class ShardRanges {
 public:
  ShardRanges(const ParameterLayout& layout, int shards)
      : layout_(&layout), shards_(size_t(shards)) {}

  // The position of the FSDP unit's shard.
  [[nodiscard]] Range wrap(int wrap) const;
  // The range of the part in the buffer. The part may be cut for more shards than the buffer has,
  // for a multiple of `shards`.
  [[nodiscard]] Range part(const TensorPart& part) const;

 private:
  const ParameterLayout* layout_;
  size_t shards_;
};

// The chunk of `count` elements that `rank` owns when they are dealt out evenly: the first
// count % world_size ranks get one more.
Range owned_range(size_t count, int world_size, int rank);

// The position of the state of each part; a range of count 0 if none is kept. State of all trained
// tensors has their layout, so that it can be processed in flat ranges; other state is packed,
// each part at a multiple of kTensorAlignment. `parts` are those that make_parts() cuts for
// `shards` shards, or all tensors whole for state that every rank holds.
std::vector<Range> place_state(const Architecture& architecture, const ParameterLayout& layout,
                               const KeptState& state, std::span<const TensorPart> parts,
                               int shards);

// Elements of the buffer: of the largest shard, where there are several.
size_t state_count(const Architecture& architecture, const ParameterLayout& layout,
                   const KeptState& state, int shards);

}  // namespace gxp
