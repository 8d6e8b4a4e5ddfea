#include "lib/tools/colltest/operation.h"

#include <string>

#include "tests/catch.h"

namespace gxp {
namespace {

// 8e9 bytes in 2 s, so algbw is 4 GB/s: what NVIDIA/nccl-tests' GetBw() gives.
TEST_CASE("bus bandwidths are those of nccl-tests", "[bench]") {
  const auto [name, of_1, of_2, of_4] = GENERATE(table<std::string, double, double, double>({
      {"all_reduce", 0, 4, 6},
      {"all_gather", 0, 2, 3},
      {"reduce_scatter", 0, 2, 3},
      {"alltoall", 0, 2, 3},
      {"gather", 0, 2, 3},
      {"scatter", 0, 2, 3},
      {"broadcast", 4, 4, 4},
      {"reduce", 4, 4, 4},
      {"sendrecv", 4, 4, 4},
      {"barrier", 0, 0, 0},
  }));
  CAPTURE(name);
  const BenchOperation* operation = find_operation(name);
  REQUIRE(operation != nullptr);
  CHECK(bandwidth(*operation, 8'000'000'000, 2, 4).algbw == Approx(4));
  CHECK(bandwidth(*operation, 8'000'000'000, 2, 1).busbw == Approx(of_1));
  CHECK(bandwidth(*operation, 8'000'000'000, 2, 2).busbw == Approx(of_2));
  CHECK(bandwidth(*operation, 8'000'000'000, 2, 4).busbw == Approx(of_4));
}

TEST_CASE("the buffer of chunked operations holds equal chunks", "[bench]") {
  CHECK(count_in(*find_operation("all_reduce"), DType::kF32, 40, 3) == 10);
  CHECK(count_in(*find_operation("all_gather"), DType::kF32, 40, 3) == 9);
  CHECK(count_in(*find_operation("alltoall"), DType::kF64, 8, 3) == 0);
  CHECK(count_in(*find_operation("barrier"), DType::kF32, 40, 3) == 0);
}

TEST_CASE("a time of zero has no bandwidth", "[bench]") {
  CHECK(bandwidth(*find_operation("all_reduce"), 8, 0, 2).busbw == 0);
}

TEST_CASE("there is no operation of another name", "[bench]") {
  CHECK(find_operation("all-reduce") == nullptr);
  CHECK(find_operation("all") == nullptr);
}

}  // namespace
}  // namespace gxp
