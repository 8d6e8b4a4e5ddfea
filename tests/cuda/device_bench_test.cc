// gxp allreduce-test's benchmark on the memory of GPUs that ranks share.
#include <fmt/format.h>

#include <map>
#include <tuple>

#include "lib/collective/engine/device_memory/device_executor.h"
#include "lib/tools/colltest/runner.h"
#include "tests/catch.h"
#include "tests/collective/run_ranks_of.h"
#include "tests/combinations.h"
#include "tests/cuda/device_ranks.h"
#include "tests/cuda/forwarded_folds.h"

namespace gxp {
namespace {

struct BenchSize {
  size_t bytes;
  size_t more;  // elements
};
using BenchRow = std::tuple<const BenchOperation*, DType, ReduceOp, BenchSize, MemoryOrigin, int>;

std::vector<BenchRow> bench_rows() {
  constexpr size_t kOneShot = DeviceExecutor::kOneShotBytes;
  std::vector<const BenchOperation*> all;
  for (const BenchOperation& operation : operations()) all.push_back(&operation);
  return combinations(
      all,
      std::vector{DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32,
                  DType::kI8, DType::kU8},
      std::vector<ReduceOp>(reduce_ops().begin(), reduce_ops().end()),
      std::vector<BenchSize>{{0, 0}, {0, 1}, {4096, 1}, {kOneShot, 0}, {kOneShot, 3}},
      std::vector{MemoryOrigin::kOrdinary, MemoryOrigin::kCommunicator},
      std::vector{0, 1});  // elements from a page boundary
}

BenchCase case_of(const BenchRow& row, int ranks) {
  const auto& [operation, dtype, redop, size, memory, unalign] = row;
  const size_t bytes = size.bytes + size_t(size.more) * size_of(dtype);
  return {operation, dtype, reduces(*operation) ? redop : ReduceOp::kSum, ranks - 1,
          count_in(*operation, dtype, bytes, ranks)};
}

BenchOptions once(MemoryOrigin memory, int unalign) {
  return {.iterations = 1, .warmup = 0, .unalign = unalign, .memory = memory};
}

// What is wrong with a half, or "".
std::string fault_of(const PlacementResult& half) {
  if (half.wrong != 0u) return fmt::format("{} wrong elements", half.wrong.value_or(99));
  return half.out_of_bounds == 0 ? "" : "a write out of bounds";
}

std::string fault_of(const CaseResult& result) {
  std::string fault = fault_of(result.out_of_place);
  if (fault.empty() && result.in_place) fault = "in place: " + fault_of(*result.in_place);
  if (fault.empty() || fault == "in place: ") return "";
  const BenchCase& bench = result.bench;
  return fmt::format("{} {} {} {}: {}", bench.operation->name, to_string(bench.dtype),
                     to_string(bench.redop), bench.count, fault);
}

// On rank 0: what is wrong with the rows, or "".
std::string run_rows(Communicator& comm, const std::vector<BenchRow>& rows) {
  const std::unique_ptr<Device> device = make_cuda_device(0);
  const std::unique_ptr<DeviceFolds> folds = make_cuda_folds();
  std::map<std::pair<MemoryOrigin, int>, std::vector<BenchCase>> cases;
  for (const BenchRow& row : rows) {
    const BenchCase bench = case_of(row, comm.world_size());
    if (supports(bench.redop, bench.dtype))
      cases[{std::get<MemoryOrigin>(row), std::get<int>(row)}].push_back(bench);
  }
  std::string fault;
  for (const auto& [memory, alike] : cases) {
    CaseRunner runner(comm, {*device, folds.get()}, alike, once(memory.first, memory.second));
    if (runner.medium().collectives != CallsOn::kDevice) return runner.medium().of_collectives();
    for (const BenchCase& bench : alike) {
      const std::string found = fault_of(runner.run(bench));
      if (fault.empty() && comm.rank() == 0) fault = found;
    }
  }
  return fault;
}

// Flips a bit of what it folds, if told to.
class FaultyFolds final : public ForwardedFolds {
 public:
  FaultyFolds(Device& device, bool is_faulty) : device_(device), is_faulty_(is_faulty) {}
  void fold_all(Stream& stream, std::span<std::byte* const> targets,
                std::span<const std::byte* const> sources, size_t bytes, DType dtype, ReduceOp op,
                const FoldOptions& options) override {
    ForwardedFolds::fold_all(stream, targets, sources, bytes, dtype, op, options);
    if (!is_faulty_ || bytes == 0) return;
    stream.finish(Deadline::after(std::chrono::seconds(20)));
    const Memory at{targets[0], 1, MemorySpace::kCuda};
    std::byte byte{};
    const Memory host{&byte, 1, MemorySpace::kHost};
    device_.copy(host, at);
    byte ^= std::byte{1};
    device_.copy(at, host);
  }

 private:
  Device& device_;
  bool is_faulty_;
};

CaseResult run_on_gpu(Communicator& comm, const BenchCase& bench, bool is_faulty = false) {
  const std::unique_ptr<Device> device = make_cuda_device(0);
  FaultyFolds folds(*device, is_faulty);
  CaseRunner runner(comm, {*device, &folds}, {&bench, 1}, once(MemoryOrigin::kCommunicator, 0));
  CaseResult result = runner.run(bench);
  comm.barrier();
  return result;
}

}  // namespace

TEST_CASE("every operation, type and reduction is exact on the memory of GPUs", "[bench]") {
  const int ranks = GENERATE(1, 2, 3);
  static const std::vector<BenchRow> rows = bench_rows();
  CAPTURE(ranks);
  const auto faults =
      run_ranks_of("shm", ranks, [](Communicator& comm) { return run_rows(comm, rows); });
  CHECK(faults[0] == "");
}

TEST_CASE("a bit that a GPU folds wrong is a wrong element of each check", "[bench]") {
  const BenchCase bench{find_operation("all_reduce"), DType::kI32, ReduceOp::kSum, 0, 5000};
  const auto results = run_ranks_of(
      "shm", 2, [&](Communicator& comm) { return run_on_gpu(comm, bench, comm.rank() == 0); });
  // Before the timing and after it, on the one rank whose result rank 0 has spoilt, the first of its
  // GPU.
  CHECK(results[0].out_of_place.wrong == 2u);
  CHECK(results[0].in_place->wrong == 2u);
  CHECK(results[0].algorithm == "device");
}

TEST_CASE("copies are measured in each GPU's memory and out of that of the rank before",
          "[bench]") {
  const int ranks = GENERATE(1, 3);
  const auto all = run_ranks_of("shm", ranks, [](Communicator& comm) {
    const std::unique_ptr<Device> device = make_cuda_device(0);
    const std::unique_ptr<DeviceFolds> folds = make_cuda_folds();
    const BenchDevice place{*device, folds.get()};
    const BenchCalls calls(comm, place);
    return measure_copies(comm, place, calls.medium(), 1 << 16);
  });
  CHECK(all[0].size() == size_t(2 * ranks - 1));
  for (const CopyRate& copy : all[0]) CHECK(copy.bytes_per_s > 0);
  const std::vector<RankInfo> on_one_gpu(size_t(ranks),
                                         RankInfo{.gpu = 0, .bus_id = {"0000:3b:00.0"}});
  CHECK(rate_of_gpus(all[0], on_one_gpu) == all[0][0].bytes_per_s);
}

}  // namespace gxp
