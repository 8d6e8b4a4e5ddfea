#include "lib/shard/layout.h"

#include "tests/catch.h"

namespace gxp {
namespace {

Architecture small_model() {
  ModelConfig config;
  config.vocab_size = 61;
  config.context = 24;
  config.hidden = 20;
  config.layers = 3;
  config.heads = 4;
  return make_architecture(config);
}

// Nothing, a lower part, some tensors of every unit, all but a few.
Architecture partly_frozen(const std::vector<std::string>& patterns) {
  Architecture model = small_model();
  freeze(model, patterns);
  return model;
}
const std::vector<std::vector<std::string>> kFrozen = {
    {}, {"w?e.*", "h.0.*"}, {"*.bias"}, {"w?e.*", "ln_f.*", "h.*.attn.*", "h.*.ln_1.*"}};

// The FSDP units' parts of units, each with its place in `layout`.
const UnitPart& part_of(const ParameterLayout& layout, int unit, bool frozen) {
  const UnitLayout& place = layout.units[size_t(unit)];
  return frozen ? place.frozen : place.trained;
}

TEST_CASE("FSDP units follow each other, trained ones first, and cut into equal shards",
          "[shard][table]") {
  const int world_size = GENERATE(1, 2, 3, 5, 7, 8, 64);
  const auto patterns = GENERATE(from_range(kFrozen));
  const auto first_units = GENERATE(values<std::vector<int>>({{}, {0}, {0, 2, 3}}));
  CAPTURE(world_size, patterns, first_units);
  const auto parts = size_t(world_size);
  const ParameterLayout layout = make_layout(partly_frozen(patterns), world_size, first_units);
  size_t end = 0;
  for (int wrap = 0; wrap < int(layout.wraps.size()); ++wrap) {
    const FsdpUnit& place = layout.wraps[size_t(wrap)];
    const size_t gap = place.flat.begin - end;
    CHECK(gap < (place.frozen && end == layout.trained_count ? kFrozenAlignment * parts : 1));
    end += gap;
    CHECK(place.flat.count % (kTensorAlignment * size_t(world_size)) == 0);
    CHECK(place.frozen == (place.flat.begin >= layout.trained_count));
    if (place.frozen && !layout.wraps[size_t(std::max(wrap - 1, 0))].frozen)
      CHECK(place.flat.begin % (kFrozenAlignment * parts) == 0);
    for (int unit = place.first_unit; unit <= place.last_unit; ++unit) {
      const UnitPart& part = part_of(layout, unit, place.frozen);
      if (part.wrap < 0) continue;
      CHECK(part.wrap == wrap);
      CHECK(part.flat.begin == end);
      end = part.flat.end();
    }
    CHECK(end == place.flat.end());
    CHECK(part_of(layout, place.first_unit, place.frozen).wrap == wrap);
    CHECK(part_of(layout, place.last_unit, place.frozen).wrap == wrap);
  }
  CHECK(layout.count == end);
}

TEST_CASE("tensors are aligned within their part of a unit, in order and apart", "[shard][table]") {
  const auto patterns = GENERATE(from_range(kFrozen));
  CAPTURE(patterns);
  const Architecture model = partly_frozen(patterns);
  const ParameterLayout layout = make_layout(model, 3);
  for (size_t u = 0; u < layout.units.size(); ++u) {
    for (const bool frozen : {false, true}) {
      const Range& part = part_of(layout, int(u), frozen).flat;
      size_t end = part.begin;
      for (size_t i = 0; i < layout.units[u].tensors.size(); ++i) {
        const Range& tensor = layout.units[u].tensors[i];
        if (model.units[u].tensors[i].frozen != frozen) continue;
        CHECK(&layout.units[u].part_with(int(i)) == &part_of(layout, int(u), frozen));
        CHECK(tensor.begin % kTensorAlignment == 0);
        CHECK(tensor.begin >= end);
        CHECK(tensor.count == model.units[u].tensors[i].count());
        end = tensor.end();
      }
      CHECK(end <= part.end());
    }
  }
}

TEST_CASE("buckets cover the flat buffer once, from its end to its beginning", "[shard]") {
  const ParameterLayout layout = make_layout(small_model(), 2);
  const uint64_t bucket_bytes = GENERATE(1, 4096, 20000, 50000, 1 << 30);
  size_t end = layout.count;
  int next_unit = int(layout.units.size()) - 1;
  for (const Bucket& bucket : make_buckets(layout, bucket_bytes)) {
    CHECK(bucket.last_unit == next_unit);
    CHECK(bucket.flat.end() == end);
    CHECK(bucket.flat.begin == layout.units[size_t(bucket.first_unit)].trained.flat.begin);
    end = bucket.flat.begin;
    next_unit = bucket.first_unit - 1;
  }
  CHECK(end == 0);
  CHECK(next_unit == -1);
}

TEST_CASE("a bucket is closed as soon as it holds the bytes asked for", "[shard]") {
  const ParameterLayout layout = make_layout(small_model(), 2);
  CHECK(make_buckets(layout, 1).size() == layout.units.size());
  CHECK(make_buckets(layout, 1 << 30).size() == 1);
}

TEST_CASE("the owned ranges of all ranks cover a tensor once and differ by one element at most",
          "[shard]") {
  const size_t count = GENERATE(0, 1, 2, 7, 8, 9, 1000);
  const int world_size = GENERATE(1, 2, 3, 8);
  size_t end = 0;
  for (int rank = 0; rank < world_size; ++rank) {
    const Range range = owned_range(count, world_size, rank);
    CHECK(range.begin == end);
    CHECK(range.count - count / size_t(world_size) <= 1);
    end = range.end();
  }
  CHECK(end == count);
}

TEST_CASE("the shards hold every element of every tensor once", "[shard]") {
  const int world_size = GENERATE(1, 2, 3, 7, 64);
  const Architecture model = partly_frozen(GENERATE(from_range(kFrozen)));
  const ParameterLayout layout = make_layout(model, world_size);
  const ShardRanges whole(layout, 1);
  const ShardRanges shards(layout, world_size);
  std::vector<int> held(layout.count);
  for (int rank = 0; rank < world_size; ++rank) {
    for (const TensorPart& part : make_parts(layout, world_size, rank)) {
      const UnitLayout& unit = layout.units[size_t(part.unit)];
      CHECK(part.in_flat == unit.tensors[size_t(part.tensor)].begin + part.elements.begin);
      CHECK(shards.part(part).end() <= layout.count / size_t(world_size));
      CHECK(whole.part(part).begin == part.in_flat);
      CHECK(part.elements.begin % kTensorAlignment == 0);
      for (size_t i = 0; i < part.elements.count; ++i) ++held[part.in_flat + i];
    }
  }
  size_t all = 0;
  for (const int times : held) {
    REQUIRE(times <= 1);
    all += size_t(times);
  }
  CHECK(all == model.parameter_count());
}

}  // namespace
}  // namespace gxp
