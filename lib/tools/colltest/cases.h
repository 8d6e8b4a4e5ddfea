// Which rows a run measures: every combination of operation, type, reduction, root and size that
// was asked for. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "lib/collective/compress/codec.h"
#include "lib/tools/colltest/bench_options.h"
#include "lib/tools/colltest/operation.h"

namespace gxp {

// Throws kUsage: an empty or endless range, more than a million sizes.
std::vector<size_t> sizes_of(const Sweep& sweep);

struct CaseRequest {
  std::vector<const BenchOperation*> operations;
  std::vector<DType> dtypes;
  std::vector<ReduceOp> redops;  // for the operations that reduce
  std::vector<int> roots;        // for those that have one; empty: every rank
  std::vector<size_t> sizes;
  const Codec* codec = nullptr;  // of what travels between hosts; null: none
  // Combinations without a meaning (a bitwise operation on floats) are left out instead of refused.
  bool skip_unsupported = false;
};

struct BenchCase {
  const BenchOperation* operation = nullptr;
  DType dtype = DType::kF32;
  ReduceOp redop = ReduceOp::kSum;
  int root = 0;
  size_t count = 0;              // elements of the logical buffer
  const Codec* codec = nullptr;  // null: none
  [[nodiscard]] size_t size_bytes() const { return count * size_of(dtype); }
};

// By operation, type, reduction and root, the sizes of each together. A barrier is one case. Throws
// kUsage: a reduction without a meaning for a type, a codec for what has none (all but all-reduces,
// sums and averages of floats of at most 32 bits), a root that is no rank.
std::vector<BenchCase> expand(const CaseRequest& request, int world_size);

// kPreMulSum takes factor 1 on even ranks and 2 on odd ones.
Call call_of(const BenchCase& bench, int rank);

// nccl-tests' words for a case: "float", "none" and -1 where an operation has no reduction or root,
// the elements of one chunk of a chunked operation.
std::span<const std::string_view> nccl_type_names();  // in the order of DType
std::string_view nccl_name(DType dtype);
std::string_view nccl_redop(const BenchCase& bench);
int nccl_root(const BenchCase& bench);
size_t nccl_count(const BenchCase& bench, int world_size);

}  // namespace gxp
