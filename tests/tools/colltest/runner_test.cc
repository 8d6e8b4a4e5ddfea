#include "lib/tools/colltest/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "lib/base/error.h"
#include "lib/tools/colltest/session.h"
#include "tests/catch.h"
#include "tests/collective/on_hosts.h"
#include "tests/collective/run_ranks.h"
#include "tests/transport/faulty.h"

namespace gxp {
namespace {

BenchOptions few() { return {.iterations = 3, .warmup = 1}; }

BenchCase small_bench(const std::string& operation, size_t count = 300) {
  return {find_operation(operation), DType::kF32, ReduceOp::kSum, 0, count};
}

CaseResult run_case(Communicator& comm, const BenchCase& bench, const BenchOptions& options) {
  const std::unique_ptr<Device> device = make_cpu_device();
  CaseResult result = CaseRunner(comm, {*device}, {&bench, 1}, options).run(bench);
  comm.barrier();  // nobody hangs up on a rank that still works
  return result;
}

// Rank 0's result.
CaseResult run_over_inproc(int world_size, const BenchCase& bench,
                           const BenchOptions& options = few()) {
  return run_ranks(world_size,
                   [&](Communicator& comm) { return run_case(comm, bench, options); })[0];
}

TEST_CASE("every operation is timed and right on every number of ranks", "[bench]") {
  const int world_size = GENERATE(1, 2, 3);
  for (const BenchOperation& operation : operations()) {
    CAPTURE(operation.name, world_size);
    const CaseResult result = run_over_inproc(world_size, small_bench(std::string(operation.name)));
    CHECK(result.out_of_place.wrong == 0u);
    CHECK(result.out_of_place.out_of_bounds == 0);
    CHECK(result.out_of_place.iterations == 3);
    CHECK(result.out_of_place.slowest.min > 0);
    CHECK(result.out_of_place.ranks.size() == size_t(world_size));
    CHECK(result.in_place.has_value() == has_in_place(operation));
    if (result.in_place) CHECK(result.in_place->wrong == 0u);
  }
}

TEST_CASE("odd memory, several calls and all paces are right too", "[bench]") {
  BenchOptions options = few();
  options.memory = GENERATE(MemoryOrigin::kOrdinary, MemoryOrigin::kCommunicator);
  options.pacing = GENERATE(Pacing::kBarrierTimed, Pacing::kNoBarrier, Pacing::kBarrierBefore);
  options.unalign = 3;
  options.calls = 2;
  options.checks = 2;
  const CaseResult result = run_over_inproc(2, small_bench("all_reduce"), options);
  CHECK(result.out_of_place.wrong == 0u);
  CHECK(result.in_place->wrong == 0u);
}

TEST_CASE("without a number of iterations there are as many as a fast call allows", "[bench]") {
  const CaseResult result =
      run_over_inproc(1, small_bench("all_reduce", 4), {.checks = 0, .per_iteration = true});
  CHECK(result.out_of_place.iterations >= 15);
  CHECK(result.out_of_place.times_s.size() == result.out_of_place.iterations);
  CHECK_FALSE(result.out_of_place.wrong.has_value());
}

TEST_CASE("a bit that is flipped on the way is a wrong element", "[bench]") {
  const auto message = static_cast<uint64_t>(GENERATE(range(0, 5)));
  InprocWorld world(2);
  const auto make = [&](int rank) -> std::unique_ptr<Transport> {
    auto transport = world.make_transport(rank);
    if (rank == 0) return transport;
    const FaultPlan plan{.fault = Fault::kCorrupt, .message = message};
    return std::make_unique<FaultyTransport>(std::move(transport), plan);
  };
  const BenchCase bench = small_bench("all_gather", 4096);
  const auto results = run_ranks_over(
      make, 2,
      [&](Communicator& comm) {
        return run_case(comm, bench, {.iterations = 1, .warmup = 0, .calls = 1, .checks = 5});
      },
      {.selection = {.algorithm = "ring"}});
  CHECK(*results[0].out_of_place.wrong == 1);  // each check sends one message
}

TEST_CASE("what codecs make of sums and averages is within their error", "[bench]") {
  BenchCase bench = small_bench("all_reduce", 5000);
  for (const Codec& codec : codecs()) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) {
      CAPTURE(codec.name, to_string(op));
      bench.codec = &codec;
      bench.redop = op;
      InprocWorld world(4);
      const auto make = [&](int rank) {
        return std::make_unique<OnHosts>(world.make_transport(rank));
      };
      const auto results =
          run_ranks_over(make, 4, [&](Communicator& comm) { return run_case(comm, bench, few()); });
      CHECK(results[0].algorithm == codec.name);
      CHECK(results[0].out_of_place.wrong == 0u);
      CHECK(results[0].in_place->wrong == 0u);
    }
  }
}

TEST_CASE("a codec among ranks of one host is refused", "[bench]") {
  BenchCase bench = small_bench("all_reduce");
  bench.codec = find_codec("int8");
  CHECK_THROWS_WITH(run_over_inproc(2, bench), Catch::Contains("all ranks are on one host"));
}

TEST_CASE("a session writes a table per operation and keeps all rows", "[bench]") {
  const std::vector<BenchCase> cases = {small_bench("broadcast", 1), small_bench("broadcast", 2),
                                        small_bench("barrier", 0)};
  NcclTable table{.options = few()};
  table.options.cycles = 2;
  std::string text;
  const auto rows = run_ranks(1, [&](Communicator& comm) {
    const std::unique_ptr<Device> device = make_cpu_device();
    const auto write = [&](const std::string& piece) { text += piece; };
    return run_session(comm, {*device}, cases, table, write).results.size();
  });
  CHECK(rows[0] == 6);
  const auto has = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  CHECK(has("# Collective test starting: broadcast\n"));
  CHECK(has("# Collective test concluded: barrier\n"));
  CHECK(std::ranges::count(text, '\n') > 40);
}

TEST_CASE("more memory than there is is refused with the numbers", "[bench]") {
  const BenchCase bench = small_bench("all_reduce", 1 << 20);
  CHECK(memory_needed({&bench, 1}, {}) == 8 << 20);
  CHECK_NOTHROW(check_memory(1 << 20, 4, 4 << 20));
  CHECK_THROWS_WITH(check_memory(1 << 20, 4, (4 << 20) - 1),
                    Catch::Contains("4 ranks of this host: 4 MiB in all, but 4 MiB"));
  CHECK(available_memory() > 1 << 20);
}

}  // namespace
}  // namespace gxp
