// What NCCL can do: by version, by who has which GPU; and when `auto` takes it. All of it is pure.
#include "lib/collective/engine/gpu_choice.h"
#include "lib/collective/engine/nccl/nccl_join.h"
#include "lib/collective/engine/nccl/nccl_versions.h"
#include "tests/catch.h"

namespace gxp {
namespace {

std::vector<GpuRankFacts> ranks_with_gpus(int count) {
  std::vector<GpuRankFacts> ranks;
  for (int rank = 0; rank < count; ++rank)
    ranks.push_back({"host", "GPU-" + std::to_string(rank), {true, "NCCL 2.28.9"}});
  return ranks;
}

}  // namespace

TEST_CASE("each feature of NCCL comes with its version, and what lacks it is told once") {
  for (const NcclFeatureRow& row : nccl_features()) {
    CHECK(has(row.since, row.feature));
    NcclVersion before = row.since;
    --before.patch;
    CHECK_FALSE(has(before, row.feature));
  }
  const auto lines = missing_features({2, 28, 9});
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] ==
        "NCCL 2.28.9 has no NCCL_MULTI_RANK_GPU_ENABLE (2.30.3): each rank needs a GPU of its own");
  CHECK(missing_features({2, 30, 7}).empty());
  CHECK(missing_features(kOldestNccl).size() == nccl_features().size());
}

TEST_CASE("NCCL's configuration says no more than its version reads") {
  CHECK(nccl_config({2, 16, 2}, {}).version == 21400);
  CHECK(nccl_config({2, 16, 2}, {}).size == 24);  // ncclConfig_v21400
  CHECK(nccl_config({2, 17, 1}, {2, 8}).max_ctas == 8);
  CHECK(nccl_config({2, 28, 9}, {}).size == sizeof(NcclConfig));
  CHECK(nccl_config({2, 28, 9}, {}).min_ctas == INT_MIN);
  CHECK_THROWS_WITH(nccl_config({2, 16, 2}, {1, 0}),
                    Catch::Contains("NCCL 2.16.2 has no minCTAs and maxCTAs (2.17.1)"));
  CHECK_THROWS_WITH(nccl_config({2, 28, 9}, {9, 8}),
                    "comm.nccl_min_ctas = 9: more than comm.nccl_max_ctas, 8");
}

TEST_CASE("ranks that share a GPU, or have other versions, are refused with what NCCL cannot do") {
  const NcclRankFacts one{"host", "GPU-0", "2.28.9"};
  const NcclRankFacts other{"host", "GPU-1", "2.28.9"};
  const NcclRankFacts elsewhere{"second host", "GPU-0", "2.28.9"};
  CHECK_NOTHROW(check_nccl_ranks({one, other, elsewhere}, false));
  CHECK_THROWS_WITH(
      check_nccl_ranks({one, other, one}, false),
      Catch::Contains("ranks 0 and 2 share GPU GPU-0 of their host, and NCCL 2.28.9 needs a GPU"));
  CHECK_NOTHROW(check_nccl_ranks({one, one}, true));
  CHECK_THROWS_WITH(check_nccl_ranks({one, {"host", "GPU-1", "2.27.3"}}, false),
                    Catch::Contains("rank 1 has NCCL 2.27.3, rank 0 has 2.28.9"));
}

TEST_CASE("auto takes the faster engine that keeps the run's promise, and says why") {
  const Support reached;
  const Support apart{false, "the ranks are on several hosts"};
  const auto ranks = ranks_with_gpus(8);
  CHECK(choose_gpu_engine(ranks, reached, false).engine == "nccl");
  CHECK(choose_gpu_engine(ranks, reached, true).engine == "native");
  CHECK_FALSE(choose_gpu_engine(ranks, reached, true).staged);
  CHECK(choose_gpu_engine(ranks, apart, false).engine == "nccl");
  const GpuChoice staged = choose_gpu_engine(ranks, apart, true);
  CHECK(staged.engine == "native");
  CHECK(staged.staged);
  CHECK_THAT(staged.reason, Catch::Contains("through host memory") &&
                                Catch::Contains("the ranks are on several hosts") &&
                                Catch::Contains("comm.engine = \"nccl\""));
}

TEST_CASE("auto does not take an NCCL that cannot serve, and needs no reason without GPUs") {
  const auto reason_of = [](const std::vector<GpuRankFacts>& ranks) {
    const GpuChoice choice = choose_gpu_engine(ranks, {}, false);
    CHECK(choice.engine == "native");
    return choice.reason;
  };
  auto shared = ranks_with_gpus(3);
  shared[2].gpu = shared[0].gpu;
  CHECK_THAT(reason_of(shared), Catch::Contains("rank 2 shares its GPU with another rank"));
  auto missing = ranks_with_gpus(2);
  missing[1].nccl = {false, "load NCCL: no such file"};
  CHECK_THAT(reason_of(missing), Catch::Contains("NCCL cannot serve: rank 1: load NCCL"));
  auto mixed = ranks_with_gpus(2);
  mixed[1].nccl.reason = "NCCL 2.27.3";
  CHECK_THAT(reason_of(mixed), Catch::Contains("rank 1 has NCCL 2.27.3, rank 0 NCCL 2.28.9"));
  auto half = ranks_with_gpus(2);
  half[1].gpu = "";
  CHECK(reason_of(half) == "not all ranks have GPUs");
  CHECK(reason_of({{"host", "", {}}, {"host", "", {}}}).empty());
}

}  // namespace gxp
