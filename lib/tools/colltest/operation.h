// The operations that `gxp allreduce-test` measures, as nccl-tests knows them: how much of a size
// each rank has, and the meaning of the bandwidth columns.
//
//   size     bytes of the logical buffer (algorithm.h): what the larger of a rank's two buffers
//            holds. Where ranks have a chunk each, it is rounded down to equal chunks.
//   count    elements; of chunked operations those of one chunk.
//   algbw    size / time, in GB/s of 10^9 bytes.
//   busbw    algbw * factor: what a link carries if the algorithm is optimal, so that the figure
//            does not depend on the number of ranks. With one rank most factors are 0.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "lib/base/dtype.h"
#include "lib/base/range.h"
#include "lib/collective/algorithm/call.h"

namespace gxp {

struct BenchOperation {
  std::string_view name;                 // "all_reduce"
  std::optional<Collective> collective;  // empty: each rank sends to the next one of a ring
  bool chunked;                          // `count` is of one rank, and the size holds one for each
  double (*factor)(int world_size);
};

// In the order in which `--op all` runs them.
std::span<const BenchOperation> operations();
const BenchOperation* find_operation(std::string_view name);  // null: there is none

bool reduces(const BenchOperation& operation);
bool has_root(const BenchOperation& operation);
bool moves_data(const BenchOperation& operation);    // all but the barrier
bool has_in_place(const BenchOperation& operation);  // all but send/recv and the barrier

// Elements of the logical buffer in `bytes`.
size_t count_in(const BenchOperation& operation, DType dtype, size_t bytes, int world_size);

// The input and output of `rank`, in elements of the logical buffer.
Extents extents_of(const BenchOperation& operation, const Call& call, int rank, int world_size);

struct Bandwidth {
  double algbw = 0;  // GB/s
  double busbw = 0;
};
Bandwidth bandwidth(const BenchOperation& operation, size_t size_bytes, double seconds,
                    int world_size);

}  // namespace gxp
