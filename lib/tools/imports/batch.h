// The rule that ties the sizes of a batch: rows of all ranks = rows of a micro-batch x accumulation x
// ranks. Two give the third; that of all ranks alone means no accumulation.
// Source: DeepSpeed, runtime/config.py, _set_batch_related_parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gxp {

struct BatchTriple {
  int64_t micro = 0, grad_accum = 0, global = 0;
  bool operator==(const BatchTriple&) const = default;
};

// What a file says of its batch.
struct BatchSizes {
  std::optional<int64_t> global, micro, grad_accum;
  std::optional<int64_t> ranks;
};

struct ImportedBatch {
  std::optional<int64_t> ranks = {};
  BatchTriple sizes = {};             // if there is no error; global 0: the ranks are not known
  std::optional<int64_t> sequence{};  // llm.c: the total is counted in tokens
  std::string error = {};
  std::vector<BatchTriple> nearest = {};  // with an error: what would fit, the nearest first
};

// Where ranks are not given, and all other three are, their number follows.
ImportedBatch solve_batch(const BatchSizes& given);

// The three totals nearest to `global` that `ranks` ranks can do, each with the sizes nearest to
// `micro` and `grad_accum`.
std::vector<BatchTriple> nearest_triples(int64_t global, int64_t micro, int64_t grad_accum,
                                         int64_t ranks);

}  // namespace gxp
