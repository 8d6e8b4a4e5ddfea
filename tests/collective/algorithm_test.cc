#include "lib/collective/algorithm/algorithm.h"

#include <algorithm>
#include <string>
#include <vector>

#include "lib/collective/algorithm/rank_subset.h"
#include "lib/collective/algorithm/schedule.h"
#include "tests/catch.h"

using namespace gxp;

TEST_CASE("chunks cover the buffer side by side, the first ones one element longer") {
  const int world_size = GENERATE(1, 2, 3, 5, 8, 64);
  const size_t count = GENERATE(0, 1, 7, 64, 4099);
  CAPTURE(world_size, count);
  const Chunks chunks(count, world_size);
  size_t end = 0;
  for (int i = 0; i < world_size; ++i) {
    const bool longer = static_cast<size_t>(i) < count % static_cast<size_t>(world_size);
    CHECK(chunks[i] == Range{end, count / static_cast<size_t>(world_size) + (longer ? 1 : 0)});
    end = chunks[i].end();
  }
  CHECK(end == count);
}

TEST_CASE("chunk indices wrap in both directions") {
  const Chunks chunks(10, 4);
  CHECK(chunks[-1] == chunks[3]);
  CHECK(chunks[-8] == chunks[0]);
  CHECK(chunks[5] == chunks[1]);
  CHECK(chunks.span(1, 3) == Range{3, 5});
}

TEST_CASE("every collective but the barrier has two algorithms or more, side by side") {
  std::vector<Collective> order;
  for (const Algorithm& algorithm : algorithms()) {
    if (order.empty() || order.back() != algorithm.collective)
      order.push_back(algorithm.collective);
  }
  CHECK(std::ranges::equal(order, collectives()));
  for (const Collective collective : collectives()) {
    const auto rows = std::ranges::count(algorithms(), collective, &Algorithm::collective);
    CAPTURE(to_string(collective));
    CHECK(rows >= (collective == Collective::kBarrier ? 1 : 2));
  }
}

TEST_CASE("an algorithm is found by its name and collective, and only by these") {
  for (const Algorithm& algorithm : algorithms()) {
    CHECK(find_algorithm(algorithm.name, algorithm.collective) == &algorithm);
  }
  CHECK(find_algorithm("ring", Collective::kBroadcast) == nullptr);
  CHECK(find_algorithm("rign", Collective::kAllReduce) == nullptr);
}

TEST_CASE("collectives have names, and say whether they reduce and have a root") {
  std::string reducing;
  std::string rooted;
  for (const Collective collective : collectives()) {
    if (reduces(collective)) reducing.append(to_string(collective)).append(" ");
    if (has_root(collective)) rooted.append(to_string(collective)).append(" ");
  }
  CHECK(reducing == "all-reduce reduce-scatter reduce ");
  CHECK(rooted == "broadcast reduce gather scatter ");
  CHECK(to_string(Collective::kAllToAll) == "all-to-all");
  CHECK(to_string(Collective::kBarrier) == "barrier");
}

TEST_CASE("a group maps its ranks and elements to those outside") {
  Algorithm evens = *find_algorithm("direct", Collective::kBroadcast);
  evens.run = [](Primitives& comm, const CallShape&) {
    if (comm.rank() % 2 != 0) return;
    RankSubset group(comm, {4, 0, 2}, 10);
    if (group.rank() == 0) group.send(group.world_size() - 1, {1, 3});
    if (group.rank() == 2) group.recv(0, {1, 3});
  };
  const Schedule schedule = record_schedule(evens, {.world_size = 5, .count = 20});
  REQUIRE(schedule[4].size() == 1);
  CHECK(to_string(schedule[4][0]) == "send [11, 14) to 2");
  REQUIRE(schedule[2].size() == 1);
  CHECK(to_string(schedule[2][0]) == "receive [11, 14) from 4");
  CHECK(schedule[0].empty());
}

TEST_CASE("hierarchical sends no more between hosts than each host's share needs") {
  const std::vector<int> hosts = {0, 0, 0, 0, 1, 1, 1, 1};
  const CallShape shape{.world_size = 8, .count = 800, .hosts = hosts};
  // Elements that leave a host, from all of its ranks together.
  const auto leaving = [&](Collective collective) {
    size_t elements = 0;
    const Schedule schedule = record_schedule(*find_algorithm("hierarchical", collective), shape);
    for (size_t rank = 0; rank < 4; ++rank) {
      for (const CollectiveStep& step : schedule[rank]) {
        if (step.to >= 4) elements += step.leaving.count;
      }
    }
    return elements;
  };
  CHECK(leaving(Collective::kAllReduce) == 800);      // 2 (h - 1)/h of the buffer, h = 2 hosts
  CHECK(leaving(Collective::kReduceScatter) == 400);  // the chunks of the other host
  CHECK(leaving(Collective::kAllGather) == 400);
  CHECK(leaving(Collective::kBroadcast) == 800);
}

TEST_CASE("each collective has one algorithm for ranks that share memory", "[collective]") {
  for (const Collective collective : collectives()) {
    CAPTURE(to_string(collective));
    CHECK(std::ranges::count_if(algorithms(), [&](const Algorithm& row) {
            return row.collective == collective && row.medium == Medium::kSharedMemory;
          }) == 1);
  }
}

TEST_CASE("a step reads as a sentence") {
  CHECK(to_string(
            CollectiveStep{.to = 1, .leaving = {0, 4}, .from = 3, .into = {4, 4}, .fold = true}) ==
        "send [0, 4) to 1, fold [4, 8) from 3");
  CHECK(to_string(CollectiveStep{.from = 3, .into = {4, 4}}) == "receive [4, 8) from 3");
  CHECK(to_string(CollectiveStep{.leaving = {0, 4}, .into = {4, 4}, .local = true}) ==
        "copy [0, 4) to [4, 8)");
  CHECK(to_string(CollectiveStep{.to = 1, .from = 2, .token = true}) ==
        "send a token to 1, receive a token from 2");
}
