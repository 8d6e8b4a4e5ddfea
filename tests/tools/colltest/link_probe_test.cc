#include "lib/tools/colltest/link_probe.h"

#include "tests/catch.h"
#include "tests/collective/run_ranks_of.h"

namespace gxp {
namespace {

TEST_CASE("every pair of ranks is measured each way, and all ranks know it", "[bench]") {
  const std::string world = GENERATE("inproc", "verbs");
  const int world_size = GENERATE(1, 2, 3);
  CAPTURE(world, world_size);
  if (!is_here({world, world})) return;
  const auto ranks = run_ranks_of(world, world_size, [&](Communicator& comm) {
    return probe_links(comm, {.seconds = 0.005, .message_bytes = 64 << 10});
  });
  for (const auto& links : ranks) {
    REQUIRE(links.size() == size_t(world_size) * size_t(world_size - 1));
    for (size_t i = 0; i < links.size(); ++i) {
      CHECK(links[i].from != links[i].to);
      CHECK(links[i].latency_s > 0);
      CHECK(links[i].gb_per_s > 0);
      CHECK(links[i].gb_per_s == ranks[0][i].gb_per_s);
    }
  }
}

}  // namespace
}  // namespace gxp
