#include "lib/collective/verifier.h"

#include <fmt/ranges.h>

#include <set>

#include "tests/catch.h"

using namespace gxp;

namespace {

std::set<int> roots_of(const Algorithm& algorithm, int world_size) {
  if (algorithm.collective != Collective::kBroadcast) return {0};
  return {0, world_size / 2, world_size - 1};
}

// The first problem of any algorithm at this world size, or "".
std::string first_problem(int world_size) {
  const auto n = static_cast<size_t>(world_size);
  for (const Algorithm& algorithm : algorithms()) {
    for (const size_t count :
         {size_t{0}, size_t{1}, n - 1, n, n + 1, size_t{1009}, size_t{1} << 33}) {
      for (const int root : roots_of(algorithm, world_size)) {
        const Proof proof =
            verify(algorithm, record(algorithm, world_size, count, root), count, root);
        if (proof.problems.empty()) continue;
        return fmt::format("{} {} N={} count={} root={}: {}", algorithm.name,
                           to_string(algorithm.collective), world_size, count, root,
                           proof.problems.front());
      }
    }
  }
  return "";
}

const Algorithm& row(std::string_view name, Collective collective) {
  return *find_algorithm(name, collective);
}

// Whether some problem of the changed schedule contains `words`.
template <class Change>
bool finds(std::string_view words, const Change& change, int world_size = 5) {
  const Algorithm& ring = row("ring", Collective::kAllReduce);
  constexpr size_t kCount = 23;
  Schedule schedule = record(ring, world_size, kCount);
  change(schedule);
  const Proof proof = verify(ring, schedule, kCount);
  for (const std::string& problem : proof.problems) {
    if (problem.find(words) != std::string::npos) return true;
  }
  UNSCOPED_INFO(fmt::format("problems: {}", fmt::join(proof.problems, "\n")));
  return false;
}

uint64_t association(Collective collective, int world_size, size_t count) {
  const Algorithm& algorithm = row("halving-doubling", collective);
  return verify(algorithm, record(algorithm, world_size, count), count).association;
}

}  // namespace

TEST_CASE("every algorithm is right for 1 to 64 ranks and any count") {
  for (int world_size = 1; world_size <= 64; ++world_size) {
    REQUIRE(first_problem(world_size) == "");
  }
}

TEST_CASE("halving-doubling combines every element alike, whatever the count and the collective") {
  for (int world_size = 1; world_size <= 64; ++world_size) {
    CAPTURE(world_size);
    const uint64_t tree = association(Collective::kAllReduce, world_size, 1);
    CHECK(tree != 0);
    for (const size_t count : {size_t{7}, size_t{64}, size_t{1009}}) {
      CHECK(association(Collective::kAllReduce, world_size, count) == tree);
      CHECK(association(Collective::kReduceScatter, world_size, count) == tree);
    }
  }
}

TEST_CASE("a ring's order depends on the layout from three ranks on") {
  Algorithm ring = row("ring", Collective::kAllReduce);
  ring.layout_invariant = true;  // a lie
  CHECK(verify(ring, record(ring, 2, 23), 23).problems.empty());
  const Proof proof = verify(ring, record(ring, 3, 23), 23);
  REQUIRE(proof.problems.size() == 1);
  CHECK(proof.problems.front().find("depends on where an element lies") != std::string::npos);
}

TEST_CASE("a wrong chunk is found") {
  CHECK(finds("step 3 sends something else", [](Schedule& s) { s[2][3].into = {0, 5}; }));
  CHECK(finds("sends something else", [](Schedule& s) { s[2][3].leaving.count -= 1; }));
}

TEST_CASE("chunks that are wrong in the same way at both ends are found") {
  CHECK(finds("ends with the contributions of ranks",
              [](Schedule& s) { s[0][1].leaving = s[1][1].into = Chunks(23, 5)[0]; }));
}

TEST_CASE("a missing step is found") {
  CHECK(finds("waits for ever", [](Schedule& s) { s[1].pop_back(); }));
}

TEST_CASE("a send that nobody receives is found") {
  CHECK(finds("rank 3 never receives this", [](Schedule& s) {
    s[1].push_back({.to = 3, .leaving = {0, 1}});
  }));
}

TEST_CASE("a swapped peer is found") {
  CHECK(finds("waits for ever", [](Schedule& s) { s[2][0].to = 4; }));
  CHECK(finds("waits for ever", [](Schedule& s) { s[2][0].from = 0; }));
}

TEST_CASE("a cycle of blocking receives is found") {
  CHECK(finds("rank 4 step 0 (fold [10, 15) from 3): waits for ever", [](Schedule& s) {
    for (auto& steps : s) {
      const CollectiveStep both = steps[0];
      steps[0] = {.from = both.from, .into = both.into, .fold = true};
      steps.insert(steps.begin() + 1, {.to = both.to, .leaving = both.leaving});
    }
  }));
}

TEST_CASE("waiting for room that the peer makes only later is found") {
  // Both send all and then receive into it: neither can take before its own has been taken.
  CHECK(finds(
      "waits for ever",
      [](Schedule& s) {
        for (int rank : {0, 1}) {
          s[static_cast<size_t>(rank)] = {{.to = 1 - rank, .leaving = {0, 23}},
                                          {.from = 1 - rank, .into = {0, 23}}};
        }
      },
      2));
}

TEST_CASE("a contribution that is folded twice is found") {
  CHECK(finds("would hold a contribution twice", [](Schedule& s) {
    for (auto& steps : s) steps.insert(steps.begin() + 1, steps[0]);
  }));
}

TEST_CASE("steps that make no sense are found before they are replayed") {
  CHECK(finds("no such peer", [](Schedule& s) { s[1][0].to = 1; }));
  CHECK(finds("exceeds the buffer", [](Schedule& s) { s[1][0].into = {20, 4}; }));
  CHECK(finds("receives into what it is sending",
              [](Schedule& s) { s[1][0].into = s[1][0].leaving; }));
}

TEST_CASE("a barrier that lacks a round is found") {
  const Algorithm& barrier = row("dissemination", Collective::kBarrier);
  Schedule schedule = record(barrier, 5, 0);
  for (auto& steps : schedule) steps.pop_back();
  const Proof proof = verify(barrier, schedule, 0);
  REQUIRE(!proof.problems.empty());
  CHECK(proof.problems.front().find("without having heard from all") != std::string::npos);
}

TEST_CASE("a formula that does not fit is found") {
  Algorithm ring = row("ring", Collective::kAllReduce);
  ring.rounds = [](int world_size) { return world_size; };
  ring.elements_sent = [](int, int, size_t count, int) { return uint64_t{2 * count}; };
  const Proof proof = verify(ring, record(ring, 4, 8), 8);
  CHECK(proof.problems.size() == 5);  // four ranks' bytes, and the rounds
}

TEST_CASE("leaving out any one step of any algorithm is found") {
  constexpr size_t kCount = 23;
  for (const Algorithm& algorithm : algorithms()) {
    const Schedule schedule = record(algorithm, 6, kCount);
    for (size_t rank = 0; rank < schedule.size(); ++rank) {
      for (size_t i = 0; i < schedule[rank].size(); ++i) {
        Schedule broken = schedule;
        broken[rank].erase(broken[rank].begin() + static_cast<long>(i));
        CAPTURE(algorithm.name, to_string(algorithm.collective), rank, i);
        CHECK(!verify(algorithm, broken, kCount).problems.empty());
      }
    }
  }
}

TEST_CASE("storing where an algorithm folds, or folding where it stores, is found") {
  constexpr size_t kCount = 23;
  for (const Algorithm& algorithm : algorithms()) {
    const Schedule schedule = record(algorithm, 6, kCount);
    for (size_t rank = 0; rank < schedule.size(); ++rank) {
      for (size_t i = 0; i < schedule[rank].size(); ++i) {
        if (schedule[rank][i].from == kNobody || schedule[rank][i].token) continue;
        Schedule broken = schedule;
        broken[rank][i].fold = !broken[rank][i].fold;
        CAPTURE(algorithm.name, to_string(algorithm.collective), rank, i);
        CHECK(!verify(algorithm, broken, kCount).problems.empty());
      }
    }
  }
}

TEST_CASE("a step reads as a sentence") {
  CHECK(to_string(
            CollectiveStep{.to = 1, .leaving = {0, 4}, .from = 3, .into = {4, 4}, .fold = true}) ==
        "send [0, 4) to 1, fold [4, 8) from 3");
  CHECK(to_string(CollectiveStep{.from = 3, .into = {4, 4}}) == "receive [4, 8) from 3");
  CHECK(to_string(CollectiveStep{.to = 1, .from = 2, .token = true}) ==
        "send a token to 1, receive a token from 2");
}
