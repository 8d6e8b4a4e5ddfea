#include "lib/collective/algorithm.h"

#include "lib/base/error.h"
#include "lib/collective/choice.h"
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

TEST_CASE("a layout-invariant choice never takes a reduction whose order depends on the layout") {
  const auto collective = GENERATE(Collective::kAllReduce, Collective::kReduceScatter,
                                   Collective::kAllGather, Collective::kBroadcast);
  for (int world_size = 1; world_size <= 9; ++world_size) {
    for (size_t bytes = 0; bytes < 1u << 30; bytes = bytes * 4 + 1) {
      const Choice choice = choose_algorithm(collective, world_size, bytes, "auto", true);
      REQUIRE(choice.algorithm != nullptr);
      CHECK(choice.algorithm->layout_invariant);
      CHECK(choice.algorithm->collective == collective);
    }
  }
}

TEST_CASE("without that limit large buffers take the ring and small ones halving-doubling") {
  const auto name = [](size_t bytes) {
    return choose_algorithm(Collective::kAllReduce, 4, bytes, "auto", false).algorithm->name;
  };
  CHECK(name(1 << 10) == "halving-doubling");
  CHECK(name(64 << 20) == "ring");
}

TEST_CASE("an algorithm that is asked for by name is taken") {
  CHECK(choose_algorithm(Collective::kAllReduce, 4, 8, "ring", true).algorithm->name == "ring");
  CHECK_NOTHROW(check_algorithm_name("auto"));
  CHECK_NOTHROW(check_algorithm_name("halving-doubling"));
}

TEST_CASE("a misspelt algorithm is an error with a near match") {
  try {
    check_algorithm_name("rign");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    CHECK(std::string(error.what()).find("did you mean 'ring'?") != std::string::npos);
  }
}
