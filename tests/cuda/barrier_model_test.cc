// Where devices meet (kernels/math/device_barrier.h), in every order of the ranks' accesses to what
// they share. Happens-before is followed by vector clocks: an access that the words do not order is
// found whether or not an order shows harm.
#include "kernels/math/device_barrier.h"

#include <array>
#include <boost/context/fiber.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace gxp {
namespace {

namespace context = boost::context;

constexpr size_t kMost = 3;
using Clock = std::array<uint8_t, kMost>;  // by rank

void join(Clock& mine, const Clock& theirs) {
  for (size_t i = 0; i < kMost; ++i) mine[i] = std::max(mine[i], theirs[i]);
}
bool is_before(const Clock& a, const Clock& b) {
  for (size_t i = 0; i < kMost; ++i)
    if (a[i] > b[i]) return false;
  return true;
}

struct Word {
  uint32_t value = 0;
  Clock released{};  // what is seen by who acquires it
};
struct Cell {
  int value = 0;
  Clock written{};
  Clock read{};
};

struct Shared {
  Word words[kMost][kMost];  // by board, then member
  Cell inputs[kMost];
};

struct Case {
  size_t ranks = 2;
  int calls = 1;
  uint32_t before = 0;     // what the words hold at first
  int absent_from = 1000;  // the last rank does not come to this barrier and all later ones
  bool releases = true;
  bool waits_behind = true;
};

// One execution: the ranks are fibers; each access of one is a step, whose rank `choose` names.
class Execution {
 public:
  explicit Execution(const Case& c) : case_(c), ranks_(c.ranks) {
    for (auto& board : shared_.words)
      for (Word& word : board) word.value = c.before;
    for (size_t rank = 0; rank < c.ranks; ++rank) {
      ranks_[rank].clock[rank] = 1;
      ranks_[rank].fiber = context::fiber([this, rank](context::fiber&& back) {
        ranks_[rank].back = std::move(back);
        program(rank);
        ranks_[rank].is_done = true;
        return std::move(ranks_[rank].back);
      });
    }
  }

  [[nodiscard]] std::vector<size_t> enabled() const {
    std::vector<size_t> ranks;
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
      if (!ranks_[rank].is_done && ranks_[rank].waits_since != stores_) ranks.push_back(rank);
    return ranks;
  }
  // Those who wait for nothing that may still come are late.
  bool let_wait_end() {
    bool any = false;
    for (Rank& rank : ranks_) {
      if (rank.is_done) continue;
      rank.is_late = any = true;
      rank.waits_since = kDoesNotWait;
    }
    return any;
  }
  void step(size_t rank) {
    ranks_[rank].waits_since = kDoesNotWait;
    ranks_[rank].fiber = std::move(ranks_[rank].fiber).resume();
  }
  // Of all that what follows depends on.
  [[nodiscard]] std::string state() const {
    std::string bytes(reinterpret_cast<const char*>(&shared_), sizeof shared_);
    for (const Rank& rank : ranks_) {
      bytes.append(reinterpret_cast<const char*>(rank.clock.data()), sizeof rank.clock);
      bytes += rank.history;
      bytes += char(rank.waits_since == stores_);
      bytes += char(rank.is_late);
    }
    return bytes;
  }
  [[nodiscard]] const std::set<std::string>& problems() const { return problems_; }

  // Of Flags:
  struct Flags {
    Execution& run;
    size_t rank;
    void release(Word* word, uint32_t value) { run.release(rank, *word, value); }
    uint32_t acquire(Word* word) { return run.acquire(rank, *word); }
    BarrierEnd pause() { return run.pause(rank); }
  };

 private:
  static constexpr int kDoesNotWait = -1;
  struct Rank {
    Clock clock{};
    std::string history;             // of what it did and saw
    int waits_since = kDoesNotWait;  // so many stores: it has seen them all
    bool is_late = false;
    bool is_done = false;
    context::fiber fiber, back;
  };

  // An access is the next step of its rank.
  void yield(size_t rank, char what) {
    ranks_[rank].history += what;
    ranks_[rank].back = std::move(ranks_[rank].back).resume();
  }

  void program(size_t rank) {
    uint32_t number = case_.before;
    for (int call = 1; call <= case_.calls; ++call) {
      write(rank, call);
      if (!barrier(rank, ++number)) return;
      for (size_t peer = 0; peer < ranks_.size(); ++peer)
        if (peer != rank && read(rank, peer) != call) problems_.insert("another call's input");
      if (case_.waits_behind && !barrier(rank, ++number)) return;
    }
  }

  bool barrier(size_t rank, uint32_t barrier) {
    if (rank + 1 == ranks_.size() && int(barrier - case_.before) >= case_.absent_from) return false;
    Flags flags{*this, rank};
    for (size_t peer = 0; peer < ranks_.size(); ++peer)
      if (peer != rank) arrive(flags, &shared_.words[peer][rank], barrier);
    for (size_t peer = 0; peer < ranks_.size(); ++peer) {
      if (peer == rank) continue;
      if (await(flags, &shared_.words[rank][peer], barrier) == BarrierEnd::kPassed) continue;
      problems_.insert("late");
      return false;
    }
    return true;
  }

  void release(size_t rank, Word& word, uint32_t value) {
    yield(rank, 's');
    ++stores_;
    Clock& clock = ranks_[rank].clock;
    word = {value, case_.releases ? clock : Clock{}};
    ++clock[rank];
  }
  uint32_t acquire(size_t rank, const Word& word) {
    yield(rank, 'l');
    join(ranks_[rank].clock, word.released);
    ranks_[rank].history += char(word.value);
    return word.value;
  }
  BarrierEnd pause(size_t rank) {
    Rank& me = ranks_[rank];
    me.history.resize(me.history.size() - 2);  // as if it had not looked yet
    me.waits_since = stores_;
    yield(rank, 'p');
    me.history.pop_back();
    return me.is_late ? BarrierEnd::kLate : BarrierEnd::kPassed;
  }
  void write(size_t rank, int value) {
    yield(rank, 'w');
    Cell& cell = shared_.inputs[rank];
    const Clock& clock = ranks_[rank].clock;
    if (!is_before(cell.written, clock) || !is_before(cell.read, clock)) problems_.insert("race");
    cell.value = value;
    cell.written = clock;
  }
  int read(size_t rank, size_t peer) {
    yield(rank, 'r');
    Cell& cell = shared_.inputs[peer];
    if (!is_before(cell.written, ranks_[rank].clock)) problems_.insert("race");
    join(cell.read, ranks_[rank].clock);
    ranks_[rank].history += char(cell.value);
    return cell.value;
  }

  Case case_;
  Shared shared_;
  std::vector<Rank> ranks_;
  std::set<std::string> problems_;
  int stores_ = 0;
};

struct Found {
  std::set<std::string> problems;
  size_t executions = 0;
};

// Depth first, each execution from its beginning; what has come to a known state ends there.
Found explore(const Case& c) {
  struct Choice {
    std::vector<size_t> ranks;
    size_t chosen = 0;
  };
  Found found;
  std::set<std::string> known;
  std::vector<Choice> path;
  do {
    Execution run(c);
    ++found.executions;
    for (size_t depth = 0;; ++depth) {
      std::vector<size_t> enabled = run.enabled();
      if (enabled.empty() && run.let_wait_end()) enabled = run.enabled();
      if (enabled.empty()) break;
      if (depth == path.size()) {
        if (!known.insert(run.state()).second) break;
        path.push_back({std::move(enabled)});
      }
      run.step(path[depth].ranks[path[depth].chosen]);
    }
    found.problems.insert(run.problems().begin(), run.problems().end());
    while (!path.empty() && ++path.back().chosen == path.back().ranks.size()) path.pop_back();
  } while (!path.empty());
  return found;
}

using Problems = std::set<std::string>;

}  // namespace

TEST_CASE("in every order, ranks that meet see each other's inputs of this call") {
  const Case c = GENERATE(Case{.ranks = 2, .calls = 3}, Case{.ranks = 2, .calls = 2, .before = ~0u},
                          Case{.ranks = 3, .calls = 1});
  CAPTURE(c.ranks, c.calls, c.before);
  const Found found = explore(c);
  CHECK(found.problems == Problems{});
  CHECK(found.executions > 100);
}

TEST_CASE("in every order, ranks that wait for one that is lost are late, and read nothing of it") {
  const int absent_from = GENERATE(1, 2, 3);
  const Found found = explore({.ranks = 2, .calls = 2, .absent_from = absent_from});
  CHECK(found.problems == Problems{"late"});
}

TEST_CASE("some order shows what is wrong with barriers that are not released, or left out") {
  CHECK(explore({.ranks = 2, .calls = 1, .releases = false}).problems.contains("race"));
  CHECK(explore({.ranks = 2, .calls = 2, .waits_behind = false}).problems.contains("race"));
}

}  // namespace gxp
