#include "lib/tools/imports/batch.h"

#include "tests/catch.h"

namespace gxp {
namespace {

using Size = std::optional<int64_t>;

}  // namespace

TEST_CASE("two sizes of a batch give the third", "[imports]") {
  struct Case {
    Size global, micro, grad_accum, ranks;
    BatchTriple sizes;
  };
  const auto [global, micro, grad_accum, ranks, sizes] =
      GENERATE(values<Case>({{64, 4, {}, 8, {4, 2, 64}},
                             {96, {}, 3, 8, {4, 3, 96}},
                             {{}, 2, 3, 8, {2, 3, 48}},
                             {32, {}, {}, 8, {4, 1, 32}},
                             {{}, 2, {}, 8, {2, 1, 16}},
                             {7, 7, 1, 1, {7, 1, 7}},
                             {64, 2, 4, {}, {2, 4, 64}},    // on 8 ranks
                             {{}, 2, 3, {}, {2, 3, 0}}}));  // on any
  CAPTURE(global, micro, grad_accum);
  const ImportedBatch batch =
      solve_batch({.global = global, .micro = micro, .grad_accum = grad_accum, .ranks = ranks});
  CHECK(batch.error.empty());
  CHECK(batch.sizes == sizes);
  if (sizes.global > 0) CHECK(batch.ranks == sizes.global / (sizes.micro * sizes.grad_accum));
}

TEST_CASE("sizes that do not fit together are answered with the nearest that do", "[imports]") {
  const ImportedBatch batch = solve_batch({.global = 64, .micro = 3, .grad_accum = 2, .ranks = 8});
  CHECK(batch.error == "64 is not micro 3 x accumulation 2 x 8 ranks");
  CHECK(batch.nearest == std::vector<BatchTriple>{{4, 2, 64}, {7, 1, 56}, {3, 3, 72}});
}

TEST_CASE("the nearest triples are right for every total and number of ranks", "[imports]") {
  for (int64_t ranks = 1; ranks <= 9; ++ranks) {
    for (int64_t global = 1; global <= 60; ++global) {
      const std::vector<BatchTriple> triples = nearest_triples(global, 4, 2, ranks);
      CAPTURE(ranks, global);
      REQUIRE(triples.size() == 3);
      for (const BatchTriple& triple : triples)
        CHECK(triple.micro * triple.grad_accum * ranks == triple.global);
      // No multiple of the ranks between the first and the total.
      CHECK(std::abs(triples[0].global - global) <= std::max(ranks / 2, ranks - global));
    }
  }
}

TEST_CASE("sizes that no batch can have are errors", "[imports]") {
  const BatchSizes sizes = GENERATE(values<BatchSizes>(
      {{.global = {}, .micro = {}, .grad_accum = 2, .ranks = 8},
       {.global = {}, .micro = 0, .grad_accum = {}, .ranks = 8},
       {.global = {}, .micro = -4, .grad_accum = {}, .ranks = 8},
       {.global = 4, .micro = 4, .grad_accum = {}, .ranks = 8},
       {.global = 32, .micro = 4, .grad_accum = {}, .ranks = {}},
       {.global = {}, .micro = int64_t{1} << 31, .grad_accum = 2, .ranks = 8},
       {.global = {}, .micro = int64_t{1} << 40, .grad_accum = {}, .ranks = 8}}));
  CAPTURE(sizes.global, sizes.micro, sizes.grad_accum);
  CHECK_FALSE(solve_batch(sizes).error.empty());
}

}  // namespace gxp
