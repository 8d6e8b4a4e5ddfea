#include "lib/bench/operation.h"

#include <algorithm>
#include <array>

namespace gxp {
namespace {

// nccl-tests, doc/PERFORMANCE.md and each test's GetBw().
double twice_others(int n) { return 2.0 * (n - 1) / n; }
double others(int n) { return (n - 1.0) / n; }
double one(int) { return 1; }
double none(int) { return 0; }

constexpr std::array kOperations = {
    Operation{"all_reduce", Collective::kAllReduce, false, twice_others},
    Operation{"all_gather", Collective::kAllGather, true, others},
    Operation{"reduce_scatter", Collective::kReduceScatter, true, others},
    Operation{"broadcast", Collective::kBroadcast, false, one},
    Operation{"reduce", Collective::kReduce, false, one},
    Operation{"gather", Collective::kGather, true, others},
    Operation{"scatter", Collective::kScatter, true, others},
    Operation{"alltoall", Collective::kAllToAll, true, others},
    Operation{"sendrecv", std::nullopt, false, one},
    Operation{"barrier", Collective::kBarrier, false, none},
};

}  // namespace

std::span<const Operation> operations() { return kOperations; }

const Operation* find_operation(std::string_view name) {
  const auto found = std::ranges::find(kOperations, name, &Operation::name);
  return found == kOperations.end() ? nullptr : &*found;
}

bool reduces(const Operation& operation) {
  return operation.collective && reduces(*operation.collective);
}

bool has_root(const Operation& operation) {
  return operation.collective && has_root(*operation.collective);
}

bool moves_data(const Operation& operation) { return operation.collective != Collective::kBarrier; }

bool has_in_place(const Operation& operation) {
  return operation.collective && moves_data(operation);
}

size_t count_in(const Operation& operation, DType dtype, size_t bytes, int world_size) {
  if (!moves_data(operation)) return 0;
  const size_t count = bytes / size_of(dtype);
  return operation.chunked ? count - count % size_t(world_size) : count;
}

Extents extents_of(const Operation& operation, const Call& call, int rank, int world_size) {
  if (!operation.collective) return {.input = {0, call.count}, .output = {0, call.count}};
  return extents_of(call, rank, world_size);
}

Bandwidth bandwidth(const Operation& operation, size_t size_bytes, double seconds, int world_size) {
  if (seconds <= 0) return {};
  const double algbw = double(size_bytes) / seconds / 1e9;
  return {algbw, algbw * operation.factor(world_size)};
}

}  // namespace gxp
