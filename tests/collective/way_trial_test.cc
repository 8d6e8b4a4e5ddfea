#include "lib/collective/tune/way_trial.h"

#include <map>

#include "tests/catch.h"

using namespace gxp;

namespace {

using enum SharedWay;

// Makes so many calls that take as long as `seconds` says, and counts the ways that they took.
std::map<SharedWay, int> call(WayTrial& trial, int calls,
                              const std::map<SharedWay, double>& seconds) {
  std::map<SharedWay, int> taken;
  for (int i = 0; i < calls; ++i) {
    const WayTrial::Turn turn = trial.turn();
    trial.advance();
    ++taken[turn.way];
    if (turn.timed) trial.note(turn.way, seconds.at(turn.way));
  }
  return taken;
}

}  // namespace

TEST_CASE("the way that calls show to be faster is taken, whatever was predicted", "[collective]") {
  const SharedWay predicted = GENERATE(kTiles, kCma, kCopied);
  std::vector<SharedWay> ways = {kTiles, kCma, kCopied};
  std::ranges::swap(ways.front(), *std::ranges::find(ways, predicted));
  WayTrial trial(ways, 4096);
  CHECK(trial.fastest() == predicted);
  auto taken = call(trial, 512, {{kTiles, 2.0}, {kCma, 1.0}, {kCopied, 3.0}});
  CHECK(trial.fastest() == kCma);
  CHECK(taken[kTiles] == 4);
  CHECK(taken[kCopied] == 4);
}

TEST_CASE("a way that has become slow is left", "[collective]") {
  WayTrial trial({kTiles, kCma}, 1 << 20);
  call(trial, 512, {{kTiles, 1.0}, {kCma, 2.0}});
  CHECK(trial.fastest() == kTiles);
  auto taken = call(trial, 2048, {{kTiles, 5.0}, {kCma, 2.0}});
  CHECK(trial.fastest() == kCma);
  CHECK(taken[kCma] > taken[kTiles]);
}

TEST_CASE("one late call changes no choice", "[collective]") {
  WayTrial trial({kTiles, kCma}, 1 << 20);
  call(trial, 24, {{kTiles, 1.0}, {kCma, 2.0}});
  trial.note(kTiles, 100.0);
  CHECK(trial.fastest() == kTiles);
}

TEST_CASE("ways that are nearly as fast are timed three times before one is chosen",
          "[collective]") {
  WayTrial trial({kTiles, kCma}, 1 << 20);
  auto taken = call(trial, 15, {{kTiles, 1.0}, {kCma, 1.1}});
  CHECK(taken[kCma] == 6);
  CHECK(trial.fastest() == kTiles);
}
