// The differences between two checkpoints in any formats, tensor by tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

enum class Likeness : uint8_t { kEqual, kValues, kDType, kShape, kOnlyFirst, kOnlySecond };
// "equal", "values differ", "dtypes differ", "shapes differ", "only in the first", ...
std::string_view to_string(Likeness likeness);

// How far the values are apart, over all elements: |a - b|, and |a - b| / max(|a|, |b|), in f64.
// NaN if one side has a NaN and the other neither the same bits nor, between two types, a NaN.
struct Distance {
  double max_absolute = 0;
  double mean_absolute = 0;
  double max_relative = 0;
  double first_a = 0;  // of the first element that differs
  double first_b = 0;
};

struct TensorComparison {
  TensorInfo a;  // where the first checkpoint has no such tensor: the second's
  TensorInfo b;  // where the second has none: the first's
  Likeness likeness = Likeness::kEqual;
  // The number of elements whose bytes differ, or between two types, whose values differ; 0 if the
  // shapes differ.
  uint64_t differing = 0;
  std::optional<uint64_t> first = {};  // the index of the first of them, row-major
  // For equal shapes, except of types that gxp cannot calculate with (F8_*, C64).
  std::optional<Distance> distance = {};
};

// For tensors with equal name and role; those of `a` first, in its order. Errors: as reading.
// Cost: reads all of both once; two buffers of 4 MiB, one for each side, and 8 MiB of values.
std::vector<TensorComparison> compare_tensors(const NamedTensors& a, const NamedTensors& b);

}  // namespace gxp
