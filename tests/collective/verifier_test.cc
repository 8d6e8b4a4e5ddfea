#include "tests/collective/verifier.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/catch.h"

using namespace gxp;

namespace {

using HostMap = std::vector<int>;  // of each rank

// A shape, and the hosts and orders of channels that it borrows.
struct Case {
  CallShape shape;
  HostMap hosts;
  std::vector<int> rings;  // if there are any, hosts are a plan's groups
  [[nodiscard]] CallShape with_hosts() const {
    CallShape whole = shape;
    if (rings.empty()) whole.hosts = hosts;
    if (!rings.empty()) whole.orders = {.rings = rings, .groups = hosts};
    return whole;
  }
};

// One for all; equal ones, the ranks of each side by side, and apart; unequal ones; one for each.
std::vector<HostMap> host_maps(const Algorithm& algorithm, int world_size) {
  std::vector<HostMap> maps = {{}};
  if (!algorithm.uses.hosts) return maps;
  maps.resize(6, HostMap(size_t(world_size)));
  for (int rank = 0; rank < world_size; ++rank) {
    const auto r = size_t(rank);
    maps[1][r] = rank / 4;
    maps[2][r] = world_size % 2 == 0 ? rank % (world_size / 2) : 0;
    maps[3][r] = rank % 3;
    maps[4][r] = rank * rank % 5;
    maps[5][r] = rank;
  }
  return maps;
}

std::set<int> roots(const Algorithm& algorithm, int world_size) {
  if (!has_root(algorithm.collective)) return {0};
  return {0, 1 % world_size, world_size / 2, world_size - 1};
}

std::set<size_t> counts(const Algorithm& algorithm, size_t world_size) {
  const size_t n = world_size;
  if (algorithm.collective == Collective::kAllToAll) return {0, n, 7 * n, (size_t{1} << 27) * n};
  return {0, 1, n - 1, n, n + 1, 1009, size_t{1} << 33};
}

std::set<int> channels(const Algorithm& algorithm) {
  return algorithm.uses.channels ? std::set{1, 2, 3} : std::set{1};
}

// None, and two in any order.
std::vector<std::vector<int>> rings(const Algorithm& algorithm, int world_size) {
  if (channels(algorithm).size() < 2) return {{}};
  std::mt19937 random{unsigned(world_size)};
  std::vector<int> orders;
  for (int i = 0; i < 2; ++i) {
    std::vector<int> order(size_t(world_size), 0);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    orders.insert(orders.end(), order.begin(), order.end());
  }
  return {{}, orders};
}

// Some 7 elements, or some segments of a huge buffer.
std::set<size_t> segments(const Algorithm& algorithm, size_t count) {
  if (!algorithm.uses.segments) return {0};
  return {0, count > 2000 ? count / 5 : 7};
}

// All of them for up to 16 ranks; then one, in turn, to save time.
template <class Options>
Options some(const Options& options, int world_size) {
  if (world_size <= 16) return options;
  return {*std::next(options.begin(), world_size % int(options.size()))};
}

std::vector<Case> cases(const Algorithm& algorithm, int world_size) {
  std::vector<Case> all;
  for (const HostMap& hosts : some(host_maps(algorithm, world_size), world_size)) {
    for (const int root : some(roots(algorithm, world_size), world_size)) {
      for (const size_t count : counts(algorithm, size_t(world_size))) {
        for (const size_t segment : segments(algorithm, count)) {
          for (const int channel_count : some(channels(algorithm), world_size)) {
            for (const std::vector<int>& orders : rings(algorithm, world_size))
              all.push_back({{world_size, count, root, channel_count, segment, {}}, hosts, orders});
          }
        }
      }
    }
  }
  return all;
}

Proof prove(const Algorithm& algorithm, const CallShape& shape) {
  return verify(algorithm, record_schedule(algorithm, shape), shape);
}

// The first problem of any algorithm at this world size, or "".
std::string first_problem(int world_size) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const Case& one : cases(algorithm, world_size)) {
      const CallShape& shape = one.shape;
      const Proof proof = prove(algorithm, one.with_hosts());
      if (proof.problems.empty()) continue;
      return fmt::format("{} {} N={} count={} root={} channels={} segment={} hosts={} rings={}: {}",
                         algorithm.name, to_string(algorithm.collective), world_size, shape.count,
                         shape.root, shape.channels, shape.segment, one.hosts, one.rings,
                         proof.problems.front());
    }
  }
  return "";
}

const Algorithm& row(std::string_view name, Collective collective) {
  return *find_algorithm(name, collective);
}

// Whether some problem of the changed schedule contains `words`.
template <class Change>
bool finds(std::string_view words, const Algorithm& algorithm, const CallShape& shape,
           const Change& change) {
  Schedule schedule = record_schedule(algorithm, shape);
  change(schedule);
  const std::string problems =
      fmt::format("{}", fmt::join(verify(algorithm, schedule, shape).problems, "\n"));
  UNSCOPED_INFO("problems: " << problems);
  return contains(problems, words);
}

// In a ring all-reduce of 23 elements; a rank's step 2i sends, and step 2i + 1 receives.
template <class Change>
bool finds(std::string_view words, const Change& change, int world_size = 5) {
  return finds(words, row("ring", Collective::kAllReduce), {.world_size = world_size, .count = 23},
               change);
}

// A shape of six ranks in which no step of the algorithm is empty.
const HostMap kThreeHosts = {0, 0, 1, 1, 2, 2};
CallShape sample(const Algorithm& algorithm) {
  const size_t count = algorithm.collective == Collective::kAllToAll ? 24 : 23;
  return {.world_size = 6, .count = count, .root = 1, .segment = 3, .hosts = kThreeHosts};
}

// Checks that change(step), applied to each step in turn for which it returns true, is found.
template <class Change>
void check_that_all_are_found(const Change& change) {
  for (const Algorithm& algorithm : algorithms()) {
    const CallShape shape = sample(algorithm);
    const Schedule schedule = record_schedule(algorithm, shape);
    for (size_t rank = 0; rank < schedule.size(); ++rank) {
      for (size_t i = 0; i < schedule[rank].size(); ++i) {
        Schedule broken = schedule;
        if (!change(broken[rank], i)) continue;
        CAPTURE(algorithm.name, to_string(algorithm.collective), rank, i);
        CHECK(!verify(algorithm, broken, shape).problems.empty());
      }
    }
  }
}

}  // namespace

TEST_CASE("every algorithm is right for 1 to 64 ranks and any count") {
  for (int world_size = 1; world_size <= 64; ++world_size) {
    REQUIRE(first_problem(world_size) == "");
  }
}

TEST_CASE("the steps of an algorithm depend only on what its row says that it uses") {
  const HostMap threes = {0, 0, 0, 1, 1, 1};  // pairs combine as a binomial tree does
  const std::vector<int> rings = {5, 3, 1, 0, 2, 4, 0, 2, 4, 1, 3, 5};
  const auto shape_with = [&](const ShapeUses& uses) {
    CallShape shape{.world_size = 6, .count = 24, .root = 1};
    if (uses.hosts) shape.hosts = threes;
    if (uses.channels) shape.channels = 2;
    if (uses.channels) shape.orders.rings = rings;
    if (uses.segments) shape.segment = 5;
    return shape;
  };
  for (const Algorithm& algorithm : algorithms()) {
    // Alone, or together with all the rest.
    const auto matters = [&](bool ShapeUses::*part) {
      ShapeUses alone;
      alone.*part = true;
      ShapeUses rest{.hosts = true, .channels = true, .segments = true};
      rest.*part = false;
      const auto steps = [&](const ShapeUses& u) {
        return record_schedule(algorithm, shape_with(u));
      };
      return steps(alone) != steps({}) || steps({true, true, true}) != steps(rest);
    };
    CAPTURE(algorithm.name, to_string(algorithm.collective));
    CHECK(matters(&ShapeUses::hosts) == algorithm.uses.hosts);
    CHECK(matters(&ShapeUses::channels) == algorithm.uses.channels);
    CHECK(matters(&ShapeUses::segments) == algorithm.uses.segments);
  }
}

TEST_CASE("all layout-invariant reductions combine ranks in one order") {
  for (int world_size = 1; world_size <= 64; ++world_size) {
    std::set<uint64_t> associations;
    for (const Algorithm& algorithm : algorithms()) {
      if (!reduces(algorithm.collective) || !algorithm.layout_invariant) continue;
      const CallShape shape{.world_size = world_size, .count = 1009, .root = world_size / 3};
      associations.insert(prove(algorithm, shape).association);
    }
    CAPTURE(world_size);
    CHECK(associations.size() == 1);
    CHECK(associations.count(0) == 0);
  }
}

TEST_CASE("an order that depends on the layout is found from three ranks on") {
  for (Algorithm lie : algorithms()) {
    if (!reduces(lie.collective) || lie.layout_invariant) continue;
    CAPTURE(lie.name, to_string(lie.collective));
    lie.layout_invariant = true;
    CHECK(prove(lie, {.world_size = 2, .count = 23}).problems.empty());
    const HostMap threes = {0, 0, 0, 1, 1, 1};  // pairs would combine as the tree does
    CallShape shape = sample(lie);
    shape.hosts = threes;
    const Proof proof = prove(lie, shape);
    REQUIRE(proof.problems.size() == 1);
    CHECK(contains(proof.problems.front(), "the order of reduction"));
  }
}

TEST_CASE("an order that is the same for all elements, but another one, is found") {
  Algorithm chain = row("binomial", Collective::kReduce);
  chain.run = [](Primitives& comm, const CallShape& shape) {
    const Range all{0, shape.count};
    if (comm.rank() + 1 < shape.world_size) comm.recv_and_fold(comm.rank() + 1, all);
    if (comm.rank() > 0) comm.send(comm.rank() - 1, all);
  };
  chain.rounds = [](const CallShape& shape) { return shape.world_size - 1; };
  CHECK(prove(chain, {.world_size = 2, .count = 23}).problems.empty());
  CHECK(prove(chain, {.world_size = 4, .count = 23}).problems ==
        std::vector<std::string>{"the order of reduction is not that of neighbours first"});
}

TEST_CASE("a wrong chunk is found") {
  CHECK(finds("step 6 sends something else", [](Schedule& s) { s[2][7].into = {0, 3}; }));
  CHECK(finds("sends something else", [](Schedule& s) { s[2][6].leaving.count -= 1; }));
  CHECK(finds("would hold a sum of elements", [](Schedule& s) { s[2][1].into.begin += 1; }));
}

TEST_CASE("chunks that are wrong in the same way at both ends are found") {
  CHECK(finds("ends with the contributions of ranks",
              [](Schedule& s) { s[0][2].leaving = s[1][3].into = Chunks(23, 5)[0]; }));
}

TEST_CASE("a missing step is found") {
  CHECK(finds("waits forever", [](Schedule& s) { s[1].erase(s[1].end() - 2); }));
}

TEST_CASE("a send that nobody receives is found") {
  CHECK(finds("rank 3 never receives this", [](Schedule& s) {
    s[1].push_back({.to = 3, .leaving = {0, 1}});
  }));
}

TEST_CASE("a swapped peer is found") {
  CHECK(finds("waits forever", [](Schedule& s) { s[2][0].to = 4; }));
  CHECK(finds("waits forever", [](Schedule& s) { s[2][1].from = 0; }));
}

TEST_CASE("a cycle of blocking receives is found") {
  CHECK(finds("rank 4 step 0 (fold [10, 15) from 3): waits forever", [](Schedule& s) {
    for (auto& steps : s) std::swap(steps[0], steps[1]);
  }));
}

TEST_CASE("waiting for room that the peer makes only later is found") {
  // Both send all and then receive into it: neither can take before its own has been taken.
  CHECK(finds(
      "waits forever",
      [](Schedule& s) {
        for (int rank : {0, 1}) {
          s[size_t(rank)] = {{.to = 1 - rank, .leaving = {0, 23}},
                             {.from = 1 - rank, .into = {0, 23}}};
        }
      },
      2));
}

TEST_CASE("moving something over what a peer has not taken is found") {
  CHECK(finds(
      "waits forever",
      [](Schedule& s) {
        for (int rank : {0, 1}) {
          s[size_t(rank)] = {{.to = 1 - rank, .leaving = {0, 9}},
                             {.leaving = {9, 9}, .into = {0, 9}, .local = true},
                             {.from = 1 - rank, .into = {9, 9}}};
        }
      },
      2));
}

TEST_CASE("a contribution that is folded twice is found") {
  CHECK(finds("would hold a contribution twice", [](Schedule& s) {
    for (auto& steps : s) steps.insert(steps.begin() + 2, {steps[0], steps[1]});
  }));
}

TEST_CASE("reading scratch that nobody has written is found") {
  const Algorithm& direct = row("direct", Collective::kAllReduce);
  const CallShape shape{.world_size = 4, .count = 23};
  const auto fold_before_receiving = [](Schedule& s) { std::swap(s[2][3], s[2][6]); };
  CHECK(finds("reads element 29, which holds nothing", direct, shape, fold_before_receiving));
}

TEST_CASE("a wrong fold within a rank is found") {
  const Algorithm& one_shot = row("one-shot", Collective::kAllReduce);
  const CallShape shape{.world_size = 4, .count = 23};
  CHECK(finds("ranks combine it differently", one_shot, shape, [](Schedule& s) {
    std::swap(s[0][6].leaving.begin, s[0][7].leaving.begin);
    std::swap(s[0][6].into.begin, s[0][7].into.begin);
    std::swap(s[0][7].leaving.begin, s[0][8].leaving.begin);
  }));
  CHECK(finds("would hold a sum of elements", one_shot, shape, [](Schedule& s) {
    s[0][6].leaving = {s[0][6].leaving.begin + 1, 22};
    s[0][6].into.count = 22;
  }));
}

TEST_CASE("a block of an all-to-all at another's place is found") {
  const CallShape shape{.world_size = 5, .count = 20};
  const auto swap_last_two = [](Schedule& s) {
    std::swap((s[3].end() - 1)->into, (s[3].end() - 2)->into);
  };
  for (const char* name : {"direct", "bruck"}) {
    CHECK(finds("ends with the contributions of ranks", row(name, Collective::kAllToAll), shape,
                swap_last_two));
  }
  // The right ranks' elements, but not those meant for this one.
  CHECK(finds("ends as element 4, not 0", row("direct", Collective::kAllToAll), shape,
              [](Schedule& s) {
                s[2][4].leaving = {4, 4};
              }));
}

TEST_CASE("steps that make no sense are found before they are replayed") {
  const CollectiveStep all_over{.to = 0, .leaving = {0, 5}, .from = 2, .into = {4, 4}};
  CHECK(finds("no such peer", [](Schedule& s) { s[1][0].to = 1; }));
  CHECK(finds("exceeds the buffer", [](Schedule& s) { s[1][1].into = {20, 4}; }));
  CHECK(finds("fills what it reads", [&](Schedule& s) { s[1][0] = all_over; }));
  CHECK(finds("fills what it reads", [](Schedule& s) {
    s[1][0] = {.leaving = {0, 4}, .into = {3, 4}, .local = true};
  }));
  CHECK(finds("moves 4 elements into 3", [](Schedule& s) {
    s[1][0] = {.leaving = {0, 4}, .into = {8, 3}, .local = true};
  }));
}

TEST_CASE("a barrier that lacks a round is found") {
  CHECK(finds("without having heard from all", row("dissemination", Collective::kBarrier),
              {.world_size = 5}, [](Schedule& s) {
                for (auto& steps : s) steps.pop_back();
              }));
}

TEST_CASE("a formula that does not fit is found") {
  Algorithm ring = row("ring", Collective::kAllReduce);
  ring.rounds = [](const CallShape& shape) { return shape.world_size; };
  ring.sent = [](int, const CallShape& shape) { return uint64_t{2 * shape.count}; };
  // Four ranks' bytes, and the rounds.
  CHECK(prove(ring, {.world_size = 4, .count = 8}).problems.size() == 5);
}

TEST_CASE("leaving out any one step of any algorithm is found") {
  check_that_all_are_found([](std::vector<CollectiveStep>& steps, size_t i) {
    const bool matters = steps[i].token || steps[i].leaving.count + steps[i].into.count > 0;
    steps.erase(steps.begin() + long(i));
    return matters;
  });
}

TEST_CASE("storing where an algorithm folds, or folding where it stores, is found") {
  check_that_all_are_found([](std::vector<CollectiveStep>& steps, size_t i) {
    steps[i].fold = !steps[i].fold;
    return steps[i].into.count > 0;
  });
}
