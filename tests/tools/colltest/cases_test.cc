#include "lib/tools/colltest/cases.h"

#include <string>

#include "lib/base/error.h"
#include "tests/catch.h"

namespace gxp {
namespace {

using Sizes = std::vector<size_t>;

CaseRequest request(const std::string& name) {
  return {.operations = {find_operation(name)},
          .dtypes = {DType::kF32},
          .redops = {ReduceOp::kSum},
          .roots = {0},
          .sizes = {8, 16}};
}

TEST_CASE("sizes go from the smallest to the largest", "[bench]") {
  CHECK(sizes_of({.min_bytes = 8, .max_bytes = 64, .factor = 2}) == Sizes{8, 16, 32, 64});
  CHECK(sizes_of({.min_bytes = 8, .max_bytes = 63, .factor = 2}) == Sizes{8, 16, 32});
  CHECK(sizes_of({.min_bytes = 1, .max_bytes = 7, .step_bytes = 3}) == Sizes{1, 4, 7});
  CHECK(sizes_of({.min_bytes = 1, .max_bytes = 7, .step_bytes = 8}) == Sizes{1});
  CHECK(sizes_of({.min_bytes = 5, .max_bytes = 5, .factor = 3}) == Sizes{5});
  CHECK(sizes_of({.min_bytes = 0, .max_bytes = 0, .factor = 2}) == Sizes{0});
  CHECK(sizes_of({.min_bytes = 1, .max_bytes = SIZE_MAX, .factor = 1 << 30}).size() == 3);
}

TEST_CASE("a range of sizes that is empty or endless is refused", "[bench]") {
  const auto [sweep, word] = GENERATE(table<Sweep, std::string>({
      {{.min_bytes = 9, .max_bytes = 8}, "above --maxbytes"},
      {{.min_bytes = 8, .max_bytes = 9, .step_bytes = 0}, "--stepbytes 0"},
      {{.min_bytes = 8, .max_bytes = 9, .factor = 1}, "--stepfactor 1: must be at least 2"},
      {{.min_bytes = 0, .max_bytes = 9, .factor = 2}, "--minbytes 0"},
      {{.min_bytes = 0, .max_bytes = SIZE_MAX, .step_bytes = 1}, "more than 1000000 sizes"},
  }));
  CAPTURE(word);
  CHECK_THROWS_WITH(sizes_of(sweep), Catch::Contains(word));
}

TEST_CASE("every combination is a case, roots and reductions only where they mean something",
          "[bench]") {
  CaseRequest all = request("all_reduce");
  all.redops = {ReduceOp::kSum, ReduceOp::kMax};
  all.roots = {};
  CHECK(expand(all, 3).size() == 4);
  all.operations = {find_operation("reduce")};
  CHECK(expand(all, 3).size() == 12);
  all.operations = {find_operation("broadcast")};
  CHECK(expand(all, 3).size() == 6);
  all.operations = {find_operation("barrier")};
  all.dtypes = {DType::kF32, DType::kI8};
  CHECK(expand(all, 3).size() == 1);
}

TEST_CASE("a bitwise reduction of floats is refused, or left out of many", "[bench]") {
  CaseRequest bitwise = request("all_reduce");
  bitwise.redops = {ReduceOp::kBitXor};
  CHECK_THROWS_WITH(expand(bitwise, 2), Catch::Contains("bxor is not defined for f32"));
  bitwise.dtypes = {DType::kF32, DType::kI32};
  bitwise.skip_unsupported = true;
  CHECK(expand(bitwise, 2).size() == 2);
  bitwise.operations = {find_operation("all_gather")};  // has no reduction
  CHECK(expand(bitwise, 2).size() == 4);
}

TEST_CASE("a codec for what it cannot encode is refused, or left out of many", "[bench]") {
  CaseRequest encoded = request("all_reduce");
  encoded.codec = find_codec("int8");
  CHECK(expand(encoded, 2).front().codec == encoded.codec);
  encoded.redops = {ReduceOp::kAvg, ReduceOp::kMax};
  CHECK_THROWS_WITH(expand(encoded, 2), Catch::Contains("not for all_reduce with max of float"));
  encoded.skip_unsupported = true;
  CHECK(expand(encoded, 2).size() == expand(request("all_reduce"), 2).size());
  encoded.operations = {find_operation("all_gather")};
  CHECK(expand(encoded, 2).empty());
}

TEST_CASE("a root must be a rank", "[bench]") {
  CaseRequest far = request("broadcast");
  far.roots = {2};
  CHECK(expand(far, 3).front().root == 2);
  CHECK_THROWS_WITH(expand(far, 2), Catch::Contains("--root 2: the ranks are 0 to 1"));
}

TEST_CASE("rows carry nccl-tests' words", "[bench]") {
  const BenchCase gather{find_operation("all_gather"), DType::kBF16, ReduceOp::kMax, 0, 12};
  CHECK(nccl_name(gather.dtype) == "bfloat16");
  CHECK(nccl_redop(gather) == "none");
  CHECK(nccl_root(gather) == -1);
  CHECK(nccl_count(gather, 3) == 4);
  const BenchCase reduce{find_operation("reduce"), DType::kF32, ReduceOp::kMax, 1, 12};
  CHECK(nccl_redop(reduce) == "max");
  CHECK(nccl_root(reduce) == 1);
  CHECK(nccl_count(reduce, 3) == 12);
}

}  // namespace
}  // namespace gxp
