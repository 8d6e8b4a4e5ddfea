#include "cmd/memory_limit.h"

#include "tests/catch.h"

namespace gxp {

TEST_CASE("a run on a GPU must leave room for trials of products and libraries' code", "[cmd]") {
  RunConfig config;
  config.train.device = "cuda";
  const auto check = [&](uint64_t bytes, bool is_free) {
    return check_memory_limit(
        config, {}, {}, {.bytes = bytes, .source = "free", .on_gpu = true, .is_free = is_free});
  };
  const MemoryNeed need = check(uint64_t{1} << 40, true);
  CHECK(need.reserve > uint64_t{1} << 30);
  CHECK(check(need.total(), true).peak == need.peak);
  CHECK_THROWS_WITH(check(need.total() - 1, true),
                    Catch::Contains("of it for trials of products and libraries' code"));
  CHECK(check(need.peak, false).reserve == 0);  // a limit of what the run itself takes
}

}  // namespace gxp
