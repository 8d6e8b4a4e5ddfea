#include "lib/tools/colltest/check.h"

#include <cstring>
#include <string>

#include "tests/catch.h"

namespace gxp {
namespace {

// More than a period, so that the pattern repeats inside of chunks.
constexpr size_t kCount = 3 * (kPeriod + 19);
constexpr int kRanks = 3;

BenchCase bench_of(const std::string& name, DType dtype = DType::kI32) {
  return {find_operation(name), dtype, ReduceOp::kSum, 1, kCount};
}

Extents extents(const BenchCase& bench, int rank) {
  return extents_of(*bench.operation, call_of(bench, rank), rank, kRanks);
}

using Elements = std::vector<int32_t>;

// What `rank` has of the logical buffer; zeros elsewhere.
Elements logical_input(const BenchCase& bench, int rank) {
  Elements whole(kCount);
  const Range has = extents(bench, rank).input;
  const Memory all = memory_of(whole);
  ExpectedData(bench, rank, kRanks).fill_input(all.slice(has.begin * 4, has.count * 4));
  return whole;
}

// Element i of the logical buffer after the operation, by its definition in algorithm.h.
int32_t expected(const BenchCase& bench, const std::vector<Elements>& inputs, int rank, size_t i) {
  const size_t chunk = kCount / kRanks;
  const std::string_view name = bench.operation->name;
  if (name == "broadcast" || name == "scatter") return inputs[1][i];
  if (name == "all_gather" || name == "gather") return inputs[i / chunk][i];
  if (name == "alltoall") return inputs[i / chunk][size_t(rank) * chunk + i % chunk];
  if (name == "sendrecv") return inputs[size_t(rank + kRanks - 1) % kRanks][i];
  uint32_t sum = 0;
  for (const Elements& input : inputs) sum += uint32_t(input[i]);
  return int32_t(sum);
}

Elements right_output(const BenchCase& bench, int rank) {
  std::vector<Elements> inputs;
  for (int r = 0; r < kRanks; ++r) inputs.push_back(logical_input(bench, r));
  const Range gets = extents(bench, rank).output;
  Elements output(gets.count);
  for (size_t i = 0; i < gets.count; ++i) output[i] = expected(bench, inputs, rank, gets.begin + i);
  return output;
}

TEST_CASE("what each operation must give is accepted, on every rank", "[bench]") {
  for (const BenchOperation& operation : operations()) {
    for (int rank = 0; rank < kRanks; ++rank) {
      CAPTURE(operation.name, rank);
      const BenchCase bench = bench_of(std::string(operation.name));
      const Elements output = right_output(bench, rank);
      CHECK(ExpectedData(bench, rank, kRanks).compare(memory_of(output)).count == 0);
    }
  }
}

TEST_CASE("a wrong element is found wherever it is, and shown", "[bench]") {
  const std::string name = GENERATE("all_reduce", "reduce_scatter", "alltoall", "sendrecv");
  const BenchCase bench = bench_of(name);
  Elements output = right_output(bench, 2);
  const size_t place = GENERATE(0, 4711, 16380);
  CAPTURE(name, place);
  const int32_t want = output[place];
  output[place] ^= 1;
  output.back() += 5;
  const WrongElements wrong = ExpectedData(bench, 2, kRanks).compare(memory_of(output));
  CHECK(wrong.count == 2);
  CHECK(wrong.first == place);
  CHECK(std::memcmp(wrong.want.data(), &want, 4) == 0);
  CHECK(std::memcmp(wrong.got.data(), &output[place], 4) == 0);
}

TEST_CASE("data that land at a wrong offset are found", "[bench]") {
  const size_t offset = GENERATE(1, 1024, kPeriod - 1);
  const BenchCase bench = bench_of("broadcast");
  Elements output = right_output(bench, 0);
  Elements moved(output.size());
  for (size_t i = 0; i < output.size(); ++i) moved[i] = output[(i + offset) % output.size()];
  CHECK(ExpectedData(bench, 0, kRanks).compare(memory_of(moved)).count > output.size() / 2);
}

TEST_CASE("no elements are right", "[bench]") {
  for (const BenchOperation& operation : operations()) {
    BenchCase bench = bench_of(std::string(operation.name));
    bench.count = 0;
    const ExpectedData data(bench, 1, kRanks);
    data.fill_input({});
    CHECK(data.compare({}).count == 0);
  }
}

}  // namespace
}  // namespace gxp
