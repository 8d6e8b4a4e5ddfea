#include "lib/tools/colltest/explain/explain.h"

#include "tests/catch.h"

using namespace gxp;

namespace {

size_t occurrences(std::string_view text, std::string_view word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++found;
  return found;
}

std::string picture_of(const Algorithm& algorithm, const CallShape& shape) {
  return schedule_svg(algorithm, shape, record_schedule(algorithm, shape));
}

const Algorithm& row_of(std::string_view name, Collective collective) {
  return *find_algorithm(name, collective);
}

}  // namespace

TEST_CASE("a table has a line for each step, with the round in which it happens") {
  const CallShape shape{.world_size = 2, .count = 4};
  CHECK(schedule_table(record_schedule(row_of("direct", Collective::kReduceScatter), shape)) ==
        "rank  step  round  what\n"
        "   0     0      1  send [2, 4) to 1\n"
        "   0     1      1  receive [4, 6) from 1\n"
        "   0     2         fold [4, 6) into [0, 2)\n"
        "   1     0      1  send [0, 2) to 0\n"
        "   1     1      1  receive [4, 6) from 0\n"
        "   1     2         fold [4, 6) into [2, 4)\n");
}

TEST_CASE("a step whose message arrives after its own has left shows both rounds") {
  const Schedule schedule = {{{.to = 1, .leaving = {0, 1}, .from = 2, .into = {1, 1}}},
                             {{.from = 0, .into = {0, 1}}, {.to = 2, .leaving = {0, 1}}},
                             {{.from = 1, .into = {0, 1}}, {.to = 0, .leaving = {0, 1}}}};
  CHECK(schedule_table(schedule).find("   0     0   1..3  send") != std::string::npos);
}

TEST_CASE("a picture has an arrow for each message and a plus for each fold") {
  // Three steps of reduce-scatter and three of all-gather; one more of each in the legend.
  const std::string svg =
      picture_of(row_of("ring", Collective::kAllReduce), {.world_size = 4, .count = 16});
  CHECK(occurrences(svg, "<line class=\"fold\"") == 3 * 4);
  CHECK(occurrences(svg, "<circle class=\"fold\"") == 3 * 4 + 1);
  CHECK(occurrences(svg, "<line class=\"store\"") == 3 * 4);
  CHECK(occurrences(svg, "<text class=\"round\"") == 6);
  CHECK(occurrences(svg, ">[12, 16)<") == 6);  // all but one rank send it on, in each phase
}

TEST_CASE("a picture names hosts, the root, local steps and scratch") {
  const std::vector<int> hosts = {0, 0, 1, 1};
  const std::string tree = picture_of(row_of("hierarchical", Collective::kBroadcast),
                                      {.world_size = 4, .count = 8, .root = 2, .hosts = hosts});
  CHECK(occurrences(tree, ">rank 2 (root)<") == 1);
  CHECK(occurrences(tree, ">host 1<") == 2);
  const std::string direct =
      picture_of(row_of("direct", Collective::kAllReduce), {.world_size = 4, .count = 8});
  CHECK(occurrences(direct, ">3 x fold<") == 4);
  CHECK(occurrences(direct, ">from 8 on: scratch<") == 1);
}

TEST_CASE("what is drawn is well-formed whatever the algorithm's name") {
  Algorithm odd = row_of("dissemination", Collective::kBarrier);
  odd.name = "<a & b>";
  const std::string svg = picture_of(odd, {.world_size = 5});
  CHECK(occurrences(svg, "&lt;a &amp; b&gt; barrier") == 1);
  CHECK(occurrences(svg, "<text") == occurrences(svg, "</text>"));
}

TEST_CASE("every algorithm can be drawn, and always alike") {
  for (const Algorithm& algorithm : algorithms()) {
    for (const int world_size : {1, 6}) {
      const CallShape shape{.world_size = world_size, .count = 24, .segment = 5};
      CAPTURE(algorithm.name, to_string(algorithm.collective));
      CHECK(picture_of(algorithm, shape) == picture_of(algorithm, shape));
    }
  }
}

TEST_CASE("a message that nobody receives is drawn without an arrow") {
  const Algorithm& ring = row_of("ring", Collective::kAllGather);
  const CallShape shape{.world_size = 2, .count = 2};
  const std::string svg = schedule_svg(ring, shape, {{{.to = 1, .leaving = {0, 1}}}, {}});
  CHECK(occurrences(svg, ">[0, 1)<") == 1);
  CHECK(occurrences(svg, "<line class=\"store\"") == 0);
}
