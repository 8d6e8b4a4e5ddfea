#include "lib/plan/runtime_bytes.h"

#include <fmt/format.h>

#include <map>

#include "lib/plan/padding.h"
#include "tests/catch.h"

namespace gxp {
namespace {

constexpr uint64_t kMiB = 1 << 20;

std::map<std::string, uint64_t> hold(const char* runtime, int stage, int gpus = 8) {
  const RuntimeQuestion question{.parameters = 7'000'000'000,
                                 .unit = 200'000'000,
                                 .precision = find_precision("bf16"),
                                 .placement = {.stage = stage, .gpus = gpus}};
  std::map<std::string, uint64_t> bytes;
  for (const Term& term : find_runtime(runtime).buffers(question))
    bytes[term.component] = term.bytes;
  return bytes;
}

TEST_CASE("DeepSpeed's buckets have their default sizes", "[plan]") {
  const int stage = GENERATE(1, 2);
  auto bytes = hold("deepspeed", stage);
  CHECK(bytes["reduce buckets"] == 2'000'000'000);
  CHECK(bytes["flattened bucket"] == 1'000'000'000);
  CHECK(bytes["float32 gradients at the update"] == 4 * 7'000'000'000 / 8);
  bytes = hold("deepspeed", 3);
  CHECK(bytes["reduce bucket"] == 1'000'000'000);
  CHECK(bytes["live parameters"] == 2'000'000'000);
  CHECK(bytes["prefetched parameters"] == 100'000'000);
}

TEST_CASE("FSDP2 holds two units three times and float32 gradients to reduce", "[plan]") {
  auto bytes = hold("fsdp2", 3);
  CHECK(bytes["gathered unit"] == 2 * 400'000'000);
  CHECK(bytes["prefetched unit"] == 400'000'000);
  CHECK(bytes["gradients to reduce"] == 800'000'000);
  CHECK(hold("fsdp2", 0).count("gathered unit") == 0);
}

TEST_CASE("the context takes what was measured, and NCCL only among several", "[plan]") {
  const char* runtime = GENERATE("deepspeed", "fsdp2", "ddp");
  auto bytes = hold(runtime, 0);
  CHECK(fmt::format("{:.2f}", double(bytes["CUDA context"]) / (1 << 30)) == "0.92");
  CHECK(fmt::format("{:.2f}", double(bytes["NCCL"]) / (1 << 30)) == "1.45");
  CHECK(hold(runtime, 0, 1).count("NCCL") == 0);
}

TEST_CASE("DDP's first bucket has 1 MiB, the others 25", "[plan]") {
  const auto [bytes, count] = GENERATE(table<uint64_t, uint64_t>(
      {{1, 1}, {kMiB, 1}, {kMiB + 1, 2}, {26 * kMiB, 2}, {26 * kMiB + 1, 3}}));
  CHECK(ddp_bucket_count(bytes) == count);
}

TEST_CASE("the caching allocator rounds to 512 bytes and takes whole segments", "[plan]") {
  const auto [bytes, block, segment] =
      GENERATE(table<uint64_t, uint64_t, uint64_t>({{1, 512, 2 * kMiB},
                                                    {513, 1024, 2 * kMiB},
                                                    {kMiB, kMiB, 2 * kMiB},
                                                    {kMiB + 1, kMiB + 512, 20 * kMiB},
                                                    {10 * kMiB, 10 * kMiB, 10 * kMiB},
                                                    {11 * kMiB + 1, 11 * kMiB + 512, 12 * kMiB}}));
  CHECK(cached_block(bytes).block == block);
  CHECK(cached_block(bytes).segment == segment);
}

TEST_CASE("a misspelt runtime gets the nearest name", "[plan]") {
  CHECK_THROWS_WITH(find_runtime("fsdp"), Catch::Contains("did you mean 'fsdp2'"));
}

// Percent of the parameters, of rows, tensors, whole model and units, to the digits given.
struct PaddingRow {
  const char* model;
  uint64_t ranks;
  std::array<int, 4> digits;
  std::array<const char*, 4> percent;
};

TEST_CASE("padding is the worked value of each layout", "[plan]") {
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

TEST_CASE("nothing is padded for one rank but the units' alignment", "[plan]") {
  for (const ShardLayout& layout : shard_layouts()) {
    CAPTURE(layout.name);
    CHECK(layout.padding(find_published_model("llama3-8b"), 1) == 0);
  }
}

}  // namespace
}  // namespace gxp
