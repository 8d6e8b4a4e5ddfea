#include "lib/device/gpu_share.h"

#include "lib/base/error.h"
#include "tests/catch.h"

namespace gxp {
namespace {

using Ranks = std::vector<RankGpu>;

std::vector<int> sharers(const Ranks& ranks) {
  std::vector<int> counts;
  for (size_t rank = 0; rank < ranks.size(); ++rank) counts.push_back(ranks_on_gpu(ranks, rank));
  return counts;
}

}  // namespace

TEST_CASE("ranks on one GPU are counted by its UUID, whatever each of them sees", "[device]") {
  const std::vector<std::string> all = {"a", "b"};
  const auto [ranks, counts] = GENERATE_COPY(table<Ranks, std::vector<int>>({
      {{{"a", {"a"}}}, {1}},
      {{{"a", {"a"}}, {"b", {"b"}}}, {1, 1}},  // each is shown its own
      {{{"a", {"a"}}, {"a", {"a"}}}, {2, 2}},  // both are shown the same one
      {{{"a", all}, {"b", all}, {"a", all}}, {2, 1, 2}},
      {{{"a", all}, {"b", {"b"}}, {"a", {"a"}}}, {2, 1, 2}},
      {{{"", {}}, {"", {}}, {"a", {"a"}}}, {1, 1, 1}},  // the first two compute on CPUs
  }));
  CHECK(sharers(ranks) == counts);
}

TEST_CASE("ranks that share a GPU while one of them sees an idle one are refused", "[device]") {
  const std::vector<std::string> near = {"a", "b"};
  const std::vector<std::string> far = {"c", "d"};
  // Local ranks 0 to 3 whose launcher shows neighbours GPUs of different sockets.
  const Ranks ranks = {{"a", near}, {"d", far}, {"a", near}, {"d", far}};
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    CHECK_THROWS_WITH(ranks_on_gpu(ranks, rank),
                      Catch::StartsWith("assign GPUs by local rank: ranks 0, 2 would share a, "
                                        "although rank 0 also sees b, which no rank uses; ") &&
                          Catch::Contains("--gpus-per-task=1"));
}

TEST_CASE("ranks take the GPUs that they see in turn", "[device]") {
  CHECK(gpu_of_rank(5, 3) == 2);
  CHECK(gpu_of_rank(5, 1) == 0);
  CHECK(gpu_of_rank(0, 8) == 0);
}

}  // namespace gxp
