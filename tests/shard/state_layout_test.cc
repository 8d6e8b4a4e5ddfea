#include "lib/shard/layout.h"

#include <string>

#include "lib/arch/optimizers.h"
#include "tests/catch.h"

namespace gxp {
namespace {

const Architecture& sample() {
  static const Architecture kSample =
      make_architecture({.vocab_size = 61, .context = 9, .hidden = 20, .layers = 2, .heads = 2});
  return kSample;
}

OptimizerSpec spec_of(const std::string& name, const char* state_dtype = "fp32") {
  OptimConfig config;
  config.name = name;
  config.momentum = 0.9;
  config.state_dtype = state_dtype;
  return make_optimizer_spec(config);
}

TEST_CASE("states of parts lie one behind the other, in their buffer", "[shard]") {
  const std::string name(GENERATE(from_range(optimizers())).name);
  const int shards = GENERATE(1, 2, 4);
  CAPTURE(name, shards);
  const ParameterLayout layout = make_layout(sample(), 4);
  for (const KeptState& state : spec_of(name).kept) {
    const size_t count = state_count(sample(), layout, state, shards);
    const int holders = state.everywhere ? 1 : shards;
    for (int shard = 0; shard < holders; ++shard) {
      const auto parts = make_parts(layout, holders, shard);
      size_t end = 0;
      for (const Range& place : place_state(sample(), layout, state, parts, holders)) {
        if (place.count == 0) continue;
        CHECK(place.begin >= end);
        end = place.end();
      }
      CHECK(end <= count);
    }
  }
}

TEST_CASE("no shard's border cuts a block of codes, and each block has a scale", "[shard]") {
  const int shards = GENERATE(1, 2, 4);
  const OptimizerSpec spec = spec_of("adamw", "int8");
  const ParameterLayout layout = make_layout(sample(), 4, {}, block_of(spec));
  for (int shard = 0; shard < shards; ++shard) {
    const auto parts = make_parts(layout, shards, shard);
    const auto codes = place_state(sample(), layout, spec.kept[0], parts, shards);
    const auto scales = place_state(sample(), layout, spec.kept[2], parts, shards);
    for (size_t i = 0; i < parts.size(); ++i) {
      CHECK(parts[i].elements.begin % 256 == 0);
      CHECK(codes[i].begin == 256 * scales[i].begin);
      CHECK(codes[i].count == parts[i].elements.count);
      CHECK(scales[i].count == (codes[i].count + 255) / 256);
    }
  }
  CHECK(state_count(sample(), layout, spec.kept[0], shards) ==
        256 * state_count(sample(), layout, spec.kept[2], shards));
}

TEST_CASE("Muon keeps a second moment of what is no matrix of a block", "[shard]") {
  const ParameterLayout layout = make_layout(sample(), 1);
  const auto parts = make_parts(layout, 1, 0);
  const auto places = place_state(sample(), layout, spec_of("muon").kept[1], parts, 1);
  for (size_t i = 0; i < parts.size(); ++i) {
    const UnitSpec& unit = sample().units[size_t(parts[i].unit)];
    const bool is_matrix = unit.tensors[size_t(parts[i].tensor)].shape.size() == 2;
    const bool is_muons = is_matrix && unit.kind == UnitKind::kBlock;
    CHECK(places[i].count == (is_muons ? 0 : parts[i].elements.count));
  }
}

TEST_CASE("Adafactor keeps less than two per cent of a model of some width", "[shard]") {
  const Architecture wide = make_architecture({.hidden = 512, .layers = 2});
  const ParameterLayout layout = make_layout(wide, 1);
  size_t kept = 0;
  for (const KeptState& state : spec_of("adafactor").kept)
    kept += state_count(wide, layout, state, 1);
  CHECK(double(kept) < 0.02 * double(layout.count));
}

}  // namespace
}  // namespace gxp
