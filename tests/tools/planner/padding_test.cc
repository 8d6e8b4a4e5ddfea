#include "lib/tools/planner/padding.h"

#include <fmt/format.h>

#include "tests/catch.h"

namespace gxp {
namespace {

// Percent of the parameters, of rows, tensors, whole model and units, to the digits given.
struct PaddingRow {
  const char* model;
  uint64_t ranks;
  std::array<int, 4> digits;
  std::array<const char*, 4> percent;
};

TEST_CASE("padding is the worked value of each layout", "[estimate]") {
  const auto row =
      GENERATE(PaddingRow{"gpt2", 64, {3, 4, 0, 3}, {"0.029", "0.0000", "0", "0.070"}},
               PaddingRow{"gpt2-xl", 64, {3, 4, 0, 3}, {"0.005", "0.0000", "0", "0.012"}},
               PaddingRow{"gpt2-xl", 512, {1, 3, 0, 2}, {"13.9", "0.010", "0", "0.19"}},
               PaddingRow{"gpt2-xl", 1024, {1, 3, 0, 2}, {"16.5", "0.012", "0", "0.20"}});
  const PublishedModel& model = find_published_model(row.model);
  const auto layouts = shard_layouts();
  REQUIRE(layouts.size() == row.percent.size());
  for (size_t i = 0; i < layouts.size(); ++i) {
    const double added = double(layouts[i].padding(model, row.ranks));
    CAPTURE(row.model, row.ranks, layouts[i].name);
    CHECK(fmt::format("{:.{}f}", 100 * added / double(parameter_count(model)), row.digits[i]) ==
          row.percent[i]);
  }
}

TEST_CASE("nothing is padded for one rank but the units' alignment", "[estimate]") {
  for (const ShardLayout& layout : shard_layouts()) {
    CAPTURE(layout.name);
    CHECK(layout.padding(find_published_model("llama3-8b"), 1) == 0);
  }
}

}  // namespace
}  // namespace gxp
