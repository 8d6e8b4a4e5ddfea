#include "lib/tools/colltest/operation.h"

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
    BenchOperation{"all_reduce", Collective::kAllReduce, false, twice_others},
    BenchOperation{"all_gather", Collective::kAllGather, true, others},
    BenchOperation{"reduce_scatter", Collective::kReduceScatter, true, others},
    BenchOperation{"broadcast", Collective::kBroadcast, false, one},
    BenchOperation{"reduce", Collective::kReduce, false, one},
    BenchOperation{"gather", Collective::kGather, true, others},
    BenchOperation{"scatter", Collective::kScatter, true, others},
    BenchOperation{"alltoall", Collective::kAllToAll, true, others},
    BenchOperation{"sendrecv", std::nullopt, false, one},
    BenchOperation{"barrier", Collective::kBarrier, false, none},
};

}  // namespace

std::span<const BenchOperation> operations() { return kOperations; }

const BenchOperation* find_operation(std::string_view name) {
  const auto found = std::ranges::find(kOperations, name, &BenchOperation::name);
  return found == kOperations.end() ? nullptr : &*found;
}

bool reduces(const BenchOperation& operation) {
  return operation.collective && reduces(*operation.collective);
}

bool has_root(const BenchOperation& operation) {
  return operation.collective && has_root(*operation.collective);
}

bool moves_data(const BenchOperation& operation) {
  return operation.collective != Collective::kBarrier;
}

bool has_in_place(const BenchOperation& operation) {
  return operation.collective && moves_data(operation);
}

size_t count_in(const BenchOperation& operation, DType dtype, size_t bytes, int world_size) {
  if (!moves_data(operation)) return 0;
  const size_t count = bytes / size_of(dtype);
  return operation.chunked ? count - count % size_t(world_size) : count;
}

Extents extents_of(const BenchOperation& operation, const Call& call, int rank, int world_size) {
  if (!operation.collective) return {.input = {0, call.count}, .output = {0, call.count}};
  return extents_of(call, rank, world_size);
}

Bandwidth bandwidth(const BenchOperation& operation, size_t size_bytes, double seconds,
                    int world_size) {
  if (seconds <= 0) return {};
  const double algbw = double(size_bytes) / seconds / 1e9;
  return {algbw, algbw * operation.factor(world_size)};
}

}  // namespace gxp
