#include "lib/estimate/runtime_bytes.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/estimate/padding.h"
#include "tests/catch.h"

namespace gxp {
namespace {

constexpr uint64_t kMiB = 1 << 20;

std::vector<Term> hold(const char* runtime, int stage, int gpus = 8) {
  return find_runtime(runtime).buffers({.parameters = 7'000'000'000,
                                        .unit = 200'000'000,
                                        .small = 1'000'000,
                                        .precision = find_precision("bf16"),
                                        .placement = {.stage = stage, .gpus = gpus}});
}

// As it is printed, of 7e9 parameters in bf16 on 8 GPUs, blocks of 2e8.
struct Figure {
  const char* runtime;
  int stage;
  const char* component;
  double unit;
  int digits;
  const char* printed;
};

constexpr double kGB = 1e9;
constexpr double kGibibyte = 1 << 30;

TEST_CASE("what libraries hold beside the states is the worked value of each", "[plan]") {
  const auto row =
      GENERATE(Figure{"deepspeed", 1, "reduce buckets", kGB, 0, "2"},
               Figure{"deepspeed", 2, "reduce buckets", kGB, 0, "2"},
               Figure{"deepspeed", 2, "flattened bucket", kGB, 0, "1"},
               Figure{"deepspeed", 2, "float32 gradients at the update", kGB, 1, "3.5"},
               Figure{"deepspeed-rule", 2, "reduce and gather buckets", kGB, 0, "9"},
               Figure{"deepspeed", 3, "reduce bucket", kGB, 0, "1"},
               Figure{"deepspeed", 3, "live parameters", kGB, 0, "2"},
               Figure{"deepspeed", 3, "prefetched parameters", kGB, 1, "0.1"},
               Figure{"deepspeed", 3, "tensors below 1e5 elements, whole", kGB, 3, "0.002"},
               Figure{"fsdp2", 3, "gathered unit", kGB, 1, "0.8"},
               Figure{"fsdp2", 3, "prefetched unit", kGB, 1, "0.4"},
               Figure{"fsdp2", 3, "gradients to reduce", kGB, 1, "0.8"},
               Figure{"ddp", 0, "gradient buckets", kGB, 0, "0"},
               Figure{"deepspeed", 0, "CUDA context", kGibibyte, 2, "0.92"},
               Figure{"fsdp2", 0, "CUDA context", kGibibyte, 2, "0.92"},
               Figure{"ddp", 0, "NCCL", kGibibyte, 2, "1.45"});
  CAPTURE(row.runtime, row.stage, row.component);
  const std::vector<Term> terms = hold(row.runtime, row.stage);
  const auto term = std::ranges::find(terms, row.component, &Term::component);
  REQUIRE(term != terms.end());
  CHECK(fmt::format("{:.{}f}", double(term->bytes) / row.unit, row.digits) == row.printed);
}

TEST_CASE("the explanation of the context has what else was measured", "[plan]") {
  const std::vector<Term> terms = hold("fsdp2", 3);
  const auto context = std::ranges::find(terms, "CUDA context", &Term::component);
  for (const char* figure : {"0.92", "0.47", "1.78"})
    CHECK_THAT(context->numbers, Catch::Contains(figure));
}

TEST_CASE("what is not held is not told: units without shards, NCCL of one GPU", "[plan]") {
  const auto has = [](const std::vector<Term>& terms, const char* component) {
    return std::ranges::find(terms, component, &Term::component) != terms.end();
  };
  CHECK_FALSE(has(hold("fsdp2", 0), "gathered unit"));
  CHECK_FALSE(has(hold("ddp", 0, 1), "NCCL"));
  CHECK_FALSE(has(hold("deepspeed", 0), "reduce buckets"));
}

TEST_CASE("parts of a runtime are rounded up to what its allocator takes", "[plan]") {
  const std::vector<Term> terms = hold("fsdp2", 3);
  uint64_t held = 0;
  for (const Term& term : terms) {
    if (contains(term.source, "_fsdp_")) held += term.bytes;
    if (contains(term.source, "Allocator")) held += term.bytes;
  }
  CHECK(held == (382 + 191 + 382) * 2 * kMiB);  // 800, 400 and 800 MB in whole 2 MiB
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
