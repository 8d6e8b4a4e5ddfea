// Schedules are played: what is gathered, read and freed must fit together.
#include "lib/program/gather_schedule.h"

#include <algorithm>
#include <set>

#include "tests/catch.h"
#include "tests/program/sample_programs.h"

namespace gxp {
namespace {

struct Played {
  int gathers = 0;
  uint64_t most_live = 0;    // parameters
  uint64_t most_needed = 0;  // by one operation
  int most_ahead = 0;        // operations whose FSDP units were gathered for none before them
};

struct Model {
  Architecture architecture = sample_architecture();
  ParameterLayout layout;
  explicit Model(const std::vector<int>& first_units = {})
      : layout(make_layout(architecture, 2, first_units)) {}
};

Played play(const Model& model, int micros, bool reshard, const GatherLimits& limits) {
  const auto uses = parameter_uses(model.architecture, model.layout, micros, true);
  const auto points = schedule_gathers(uses, model.layout, reshard, limits);
  Played played;
  std::set<int> live;
  const auto count_of = [&](const auto& wraps) {
    uint64_t count = 0;
    for (const int wrap : wraps) count += model.layout.wraps[size_t(wrap)].flat.count;
    return count;
  };
  const auto gather = [&](const std::vector<int>& wraps, size_t at) {
    for (const int wrap : wraps) {
      CHECK(live.insert(wrap).second);
      ++played.gathers;
      size_t use = at;
      while (std::ranges::find(uses[use].wraps, wrap) == uses[use].wraps.end()) ++use;
      std::set<std::vector<int>> between;
      for (size_t i = at + 1; i <= use; ++i) between.insert(uses[i].wraps);
      between.erase(uses[at].wraps);
      between.erase(std::vector<int>());
      played.most_ahead = std::max(played.most_ahead, int(between.size()));
    }
    played.most_live = std::max(played.most_live, count_of(live));
  };
  for (size_t at = 0; at < uses.size(); ++at) {
    gather(points[at].before, at);
    for (const int wrap : uses[at].wraps) CHECK(live.count(wrap) == 1);
    gather(points[at].behind, at);
    for (const int wrap : points[at].freed) CHECK(live.erase(wrap) == 1);
    played.most_needed = std::max(played.most_needed, count_of(uses[at].wraps));
  }
  CHECK(live.empty());
  return played;
}

// The model: an embedding, three blocks, a head that is tied to the embedding.
TEST_CASE("each way to keep parameters saves the gathers that it should", "[program]") {
  struct Row {
    const char* what;
    bool reshard;
    GatherLimits limits;
    int first, later;  // gathers of the first micro-batch, and of each one after it
  };
  const auto row = GENERATE(values<Row>(
      {{"zero3: five, the tied table again, two blocks backward", true, {}, 8, 8},
       {"shard_grad_op: each once a micro-batch", false, {}, 5, 5},
       {"held: the tied table and two blocks again", true, {.hold_over_micros = true}, 8, 3},
       {"held, and kept for backward: once a step", false, {.hold_over_micros = true}, 5, 0},
       {"persistent: once a step", true, {.persist_below = 1 << 30}, 5, 0},
       {"kept for any reuse: once a step", true, {.reuse_within = 1 << 30}, 5, 0},
       {"no room for reuse", true, {.max_live = 1, .reuse_within = 1 << 30}, 8, 8}}));
  const auto backward =
      GENERATE(BackwardPrefetch::kPre, BackwardPrefetch::kPost, BackwardPrefetch::kNone);
  const bool forward = GENERATE(true, false);
  const int micros = GENERATE(1, 3);
  CAPTURE(row.what, int(backward), forward, micros);
  GatherLimits limits = row.limits;
  limits.forward_prefetch = forward;
  limits.backward_prefetch = backward;
  CHECK(play(Model(), micros, row.reshard, limits).gathers == row.first + (micros - 1) * row.later);
}

TEST_CASE("no more is gathered ahead than allowed, and as much if there is no limit", "[program]") {
  const int wraps_ahead = GENERATE(1, 2, 3);
  const bool reshard = GENERATE(true, false);
  const auto first_units = GENERATE(values<std::vector<int>>({{}, {0, 2}, {0}}));
  CAPTURE(wraps_ahead, reshard, first_units);
  const Model model(first_units);
  const Played played = play(model, 2, reshard, {.wraps_ahead = wraps_ahead});
  CHECK(played.most_ahead == std::min(wraps_ahead, int(model.layout.wraps.size()) - 1));
  const GatherLimits none = {.forward_prefetch = false,
                             .backward_prefetch = BackwardPrefetch::kNone};
  CHECK(play(model, 2, reshard, none).most_ahead == 0);
  CHECK(play(model, 2, reshard, {.wraps_ahead = wraps_ahead, .max_ahead = 1}).most_ahead == 0);
}

TEST_CASE("what is not needed at once stays within the limit of live parameters", "[program]") {
  const Model model;
  const uint64_t block = model.layout.wraps[1].flat.count;
  const uint64_t max_live = GENERATE_COPY(1, block, 2 * block + 5, 4 * block);
  const Played played = play(model, 2, true, {.wraps_ahead = 4, .max_live = max_live});
  // The first FSDP unit of the backward pass lies next to what the head reads.
  CHECK(played.most_live <= std::max(max_live, played.most_needed + block));
}

}  // namespace
}  // namespace gxp
