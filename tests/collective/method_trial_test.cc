#include "lib/collective/tune/method_trial.h"

#include <map>

#include "tests/catch.h"

using namespace gxp;

namespace {

using enum SharedMethod;

// Makes so many calls that take as long as `seconds` says, and counts the methods that they took.
std::map<SharedMethod, int> call(MethodTrial& trial, int calls,
                                 const std::map<SharedMethod, double>& seconds) {
  std::map<SharedMethod, int> taken;
  for (int i = 0; i < calls; ++i) {
    const MethodTrial::Turn turn = trial.turn();
    trial.advance();
    ++taken[turn.method];
    if (turn.timed) trial.note(turn.method, seconds.at(turn.method));
  }
  return taken;
}

}  // namespace

TEST_CASE("the method that calls show to be faster is taken, whatever was predicted",
          "[collective]") {
  const SharedMethod predicted = GENERATE(kTiles, kCma, kCopied);
  std::vector<SharedMethod> methods = {kTiles, kCma, kCopied};
  std::ranges::swap(methods.front(), *std::ranges::find(methods, predicted));
  MethodTrial trial(methods, 4096);
  CHECK(trial.fastest() == predicted);
  auto taken = call(trial, 512, {{kTiles, 2.0}, {kCma, 1.0}, {kCopied, 3.0}});
  CHECK(trial.fastest() == kCma);
  CHECK(taken[kTiles] == 4);
  CHECK(taken[kCopied] == 4);
}

TEST_CASE("a method that has become slow is left", "[collective]") {
  MethodTrial trial({kTiles, kCma}, 1 << 20);
  call(trial, 512, {{kTiles, 1.0}, {kCma, 2.0}});
  CHECK(trial.fastest() == kTiles);
  auto taken = call(trial, 2048, {{kTiles, 5.0}, {kCma, 2.0}});
  CHECK(trial.fastest() == kCma);
  CHECK(taken[kCma] > taken[kTiles]);
}

TEST_CASE("one late call changes no choice", "[collective]") {
  MethodTrial trial({kTiles, kCma}, 1 << 20);
  call(trial, 24, {{kTiles, 1.0}, {kCma, 2.0}});
  trial.note(kTiles, 100.0);
  CHECK(trial.fastest() == kTiles);
}

TEST_CASE("methods that are nearly as fast are timed three times before one is chosen",
          "[collective]") {
  MethodTrial trial({kTiles, kCma}, 1 << 20);
  auto taken = call(trial, 15, {{kTiles, 1.0}, {kCma, 1.1}});
  CHECK(taken[kCma] == 6);
  CHECK(trial.fastest() == kTiles);
}
