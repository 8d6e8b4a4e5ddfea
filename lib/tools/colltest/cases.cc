#include "lib/tools/colltest/cases.h"

#include <array>
#include <numeric>

#include "lib/base/bytes.h"
#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr std::array<std::string_view, 8> kTypeNames = {"double", "float", "half", "bfloat16",
                                                        "int64",  "int32", "int8", "uint8"};
constexpr size_t kMaxSizes = 1'000'000;

// An operation with what it does not have left at one value.
std::vector<ReduceOp> redops_of(const BenchOperation& operation, const CaseRequest& request) {
  return reduces(operation) ? request.redops : std::vector{ReduceOp::kSum};
}

std::vector<int> roots_of(const BenchOperation& operation, const CaseRequest& request,
                          int world_size) {
  if (!has_root(operation)) return {0};
  if (!request.roots.empty()) return request.roots;
  std::vector<int> all(size_t(world_size), 0);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void check_roots(const CaseRequest& request, int world_size) {
  for (const int root : request.roots) {
    if (root < 0 || root >= world_size)
      fail(ErrorKind::kUsage, "--root {}: the ranks are 0 to {}", root, world_size - 1);
  }
}

bool can_be_encoded(const BenchOperation& operation, DType dtype, ReduceOp redop) {
  const bool floats = dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
  return operation.collective == Collective::kAllReduce && floats &&
         (redop == ReduceOp::kSum || redop == ReduceOp::kAvg);
}

// Whether the reduction has a meaning for the type, and the codec one for both.
bool usable(const BenchOperation& operation, DType dtype, ReduceOp redop,
            const CaseRequest& request) {
  const Support support = reduces(operation) ? supports(redop, dtype) : Support{};
  if (!support && !request.skip_unsupported) fail(ErrorKind::kUsage, "--redop: {}", support.reason);
  if (!support.ok || request.codec == nullptr) return support.ok;
  const bool encodes = can_be_encoded(operation, dtype, redop);
  if (!encodes && !request.skip_unsupported) {
    fail(ErrorKind::kUsage,
         "--codec {}: it is for all_reduce with sum or avg of float, half or bfloat16, not for {} "
         "with {} of {}",
         request.codec->name, operation.name, to_string(redop), nccl_name(dtype));
  }
  return encodes;
}

}  // namespace

std::vector<size_t> sizes_of(const Sweep& sweep) {
  if (sweep.min_bytes > sweep.max_bytes) {
    fail(ErrorKind::kUsage, "--minbytes {} is above --maxbytes {}", format_bytes(sweep.min_bytes),
         format_bytes(sweep.max_bytes));
  }
  if (sweep.factor == 1 || sweep.factor < 0)
    fail(ErrorKind::kUsage, "--stepfactor {}: must be at least 2", sweep.factor);
  if (sweep.factor == 0 && sweep.step_bytes == 0)
    fail(ErrorKind::kUsage, "--stepbytes 0: must be positive");
  if (sweep.factor > 0 && sweep.min_bytes == 0 && sweep.max_bytes > 0)
    fail(ErrorKind::kUsage,
         "--minbytes 0: no --stepfactor leads from 0 to --maxbytes; use --stepbytes");
  std::vector<size_t> sizes;
  for (size_t bytes = sweep.min_bytes;;) {
    sizes.push_back(bytes);
    if (sizes.size() > kMaxSizes)
      fail(ErrorKind::kUsage, "--stepbytes {}: gives more than {} sizes", sweep.step_bytes,
           kMaxSizes);
    const size_t factor = sweep.factor == 0 ? 1 : size_t(sweep.factor);
    const size_t step = sweep.factor == 0 ? sweep.step_bytes : 0;
    if (bytes == sweep.max_bytes || step > sweep.max_bytes ||
        bytes > (sweep.max_bytes - step) / factor)
      return sizes;
    bytes = bytes * factor + step;
  }
}

std::vector<BenchCase> expand(const CaseRequest& request, int world_size) {
  check_roots(request, world_size);
  std::vector<BenchCase> cases;
  const auto add_sizes = [&](BenchCase bench) {
    for (const size_t bytes : request.sizes) {
      bench.count = count_in(*bench.operation, bench.dtype, bytes, world_size);
      cases.push_back(bench);
      if (!moves_data(*bench.operation)) return;
    }
  };
  for (const BenchOperation* operation : request.operations) {
    for (const DType dtype : request.dtypes) {
      for (const ReduceOp redop : redops_of(*operation, request)) {
        if (!usable(*operation, dtype, redop, request)) continue;
        for (const int root : roots_of(*operation, request, world_size))
          add_sizes({operation, dtype, redop, root, 0, request.codec});
      }
      if (!moves_data(*operation)) break;  // a barrier has no type
    }
  }
  return cases;
}

Call call_of(const BenchCase& bench, int rank) {
  return {.collective = bench.operation->collective.value_or(Collective::kBarrier),
          .dtype = bench.dtype,
          .op = bench.redop,
          .factor = bench.redop == ReduceOp::kPreMulSum ? 1.0 + rank % 2 : 1.0,
          .count = bench.count,
          .root = bench.root};
}

std::span<const std::string_view> nccl_type_names() { return kTypeNames; }
std::string_view nccl_name(DType dtype) { return kTypeNames[size_t(dtype)]; }

std::string_view nccl_redop(const BenchCase& bench) {
  return reduces(*bench.operation) ? to_string(bench.redop) : "none";
}

int nccl_root(const BenchCase& bench) { return has_root(*bench.operation) ? bench.root : -1; }

size_t nccl_count(const BenchCase& bench, int world_size) {
  return bench.operation->chunked ? bench.count / size_t(world_size) : bench.count;
}

}  // namespace gxp
