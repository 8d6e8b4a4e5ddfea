// Logits over cached keys and values.
#include "tests/catch.h"
#include "tests/model/small_run.h"

namespace gxp {
namespace {

constexpr size_t kPositions = 6;

// One row's positions from `begin` to `end`.
SmallBatch part_of_row(size_t begin, size_t end) {
  static const std::vector<int32_t> kRow = {3, 1, 4, 1, 5, 9};
  const auto at = [](size_t i) { return kRow.begin() + ptrdiff_t(i); };
  return {1, end - begin, {at(begin), at(end)}, std::vector<int32_t>(end - begin, 0)};
}

// The caches of a model's units, which hold NaNs where nothing is stored.
struct Caches {
  explicit Caches(const SmallRun& run) {
    const Shape shape = {1, kPositions, run.decoder().cached_channels()};
    memory.assign(2 * run.units().size(), Floats(shape.count(), std::nanf("")));
    for (size_t keys = 0; keys < memory.size(); keys += 2) {
      const size_t values = run.decoder().has_one_qkv() ? keys : keys + 1;
      of_units.push_back({{memory_of(memory[keys]), DType::kF32, shape},
                          {memory_of(memory[values]), DType::kF32, shape}});
    }
  }
  std::vector<Floats> memory;
  std::vector<KeyValueCache> of_units;
};

TEST_CASE("a row that is extended has the logits of the whole row", "[model]") {
  const ModelConfig config = GENERATE(from_range(small_models()));
  const size_t prompt = GENERATE(1, 4);
  const size_t together = GENERATE(1, 2);  // positions
  CAPTURE(config.family, config.window, prompt, together);
  Caches caches{SmallRun(config)};
  size_t first = 0;
  for (size_t end = prompt; end <= kPositions; end += together) {
    SmallRun whole(config, part_of_row(0, end));
    SmallRun part(config, part_of_row(first, end));
    const Floats expected = whole.last_logits();
    const Floats found = part.last_logits(caches.of_units, first);
    for (size_t i = 0; i < expected.size(); ++i)
      CHECK(found[i] == Approx(expected[i]).epsilon(1e-4).margin(1e-5));
    first = end;
  }
}

}  // namespace
}  // namespace gxp
