#include "lib/collective/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "lib/base/error.h"

namespace gxp {
namespace {

using RankSet = uint64_t;
RankSet only(int rank) { return RankSet{1} << rank; }

// What a stretch of elements holds at one rank: whose contributions, combined by which tree.
struct Content {
  RankSet contributors = 0;
  uint64_t tree = 0;
  friend bool operator==(const Content&, const Content&) = default;
};

// splitmix64's finaliser (Steele, Lea & Flood, OOPSLA 2014).
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
Content leaf(int rank) { return {only(rank), mix(static_cast<uint64_t>(rank) + 1)}; }
// Unordered children: fold() is commutative in bits.
uint64_t join(uint64_t a, uint64_t b) { return mix(std::min(a, b) + mix(std::max(a, b))); }

struct Message {
  int from = kNobody;
  int to = kNobody;
  size_t step = 0;  // of the sender
  Range range;
  bool token = false;
  int round = 0;      // when it has been sent
  RankSet known = 0;  // from whom the sender had heard
  std::vector<Content> contents;
};

struct RankState {
  size_t next = 0;    // step
  bool sent = false;  // the next step's message has left
  int round = 0;
  uint64_t elements_sent = 0;
  RankSet known = 0;
  std::vector<Content> contents;  // one per stretch
};

class Replay {
 public:
  Replay(const Algorithm& algorithm, const Schedule& schedule, size_t count, int root)
      : algorithm_(algorithm),
        schedule_(schedule),
        count_(count),
        root_(root),
        world_size_(static_cast<int>(schedule.size())),
        everybody_(~RankSet{0} >> (64 - world_size_)),
        chunks_(count, world_size_) {}

  Proof run() {
    check_form();
    if (!proof_.problems.empty()) return proof_;
    cut_into_stretches();
    place_inputs();
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < world_size_; ++rank) moved |= advance(rank);
    }
    check_ends();
    if (!proof_.problems.empty()) return proof_;  // the content would only echo the cause
    check_content();
    check_association();
    check_cost();
    return proof_;
  }

 private:
  template <class... Args>
  void report(int rank, size_t step, fmt::format_string<Args...> format, Args&&... args) {
    proof_.problems.push_back(fmt::format("rank {} step {} ({}): {}", rank, step,
                                          to_string(step_of(rank, step)),
                                          fmt::format(format, std::forward<Args>(args)...)));
  }
  [[nodiscard]] const CollectiveStep& step_of(int rank, size_t step) const {
    return schedule_[static_cast<size_t>(rank)][step];
  }
  [[nodiscard]] size_t steps_of(int rank) const {
    return schedule_[static_cast<size_t>(rank)].size();
  }
  RankState& state(int rank) { return states_[static_cast<size_t>(rank)]; }

  [[nodiscard]] bool is_peer(int rank, int peer) const {
    return peer == kNobody || (0 <= peer && peer < world_size_ && peer != rank);
  }

  void check_form() {
    for (int rank = 0; rank < world_size_; ++rank) {
      for (size_t i = 0; i < steps_of(rank); ++i) {
        const CollectiveStep& step = step_of(rank, i);
        if (!is_peer(rank, step.to) || !is_peer(rank, step.from)) report(rank, i, "no such peer");
        if (step.leaving.end() > count_ || step.into.end() > count_) {
          report(rank, i, "exceeds the buffer of {} elements", count_);
        }
        if (step.to != kNobody && step.from != kNobody && overlap(step.leaving, step.into)) {
          report(rank, i, "receives into what it is sending");
        }
      }
    }
  }

  // Stretches: between two borders no step tells elements apart.
  void cut_into_stretches() {
    std::set<size_t> borders = {0, count_};
    for (int rank = 0; rank < world_size_; ++rank) borders.insert(chunks_[rank].begin);
    for (const auto& steps : schedule_) {
      for (const CollectiveStep& step : steps) {
        borders.insert({step.leaving.begin, step.leaving.end(), step.into.begin, step.into.end()});
      }
    }
    borders_.assign(borders.begin(), borders.end());
    owners_.resize(stretch_count());
    for (int rank = 0; rank < world_size_; ++rank) {
      const auto begin = owners_.begin();
      std::fill(begin + static_cast<long>(stretch_at(chunks_[rank].begin)),
                begin + static_cast<long>(stretch_at(chunks_[rank].end())), rank);
    }
  }
  [[nodiscard]] size_t stretch_at(size_t border) const {
    return static_cast<size_t>(std::lower_bound(borders_.begin(), borders_.end(), border) -
                               borders_.begin());
  }
  [[nodiscard]] size_t stretch_count() const { return borders_.size() - 1; }

  void place_inputs() {
    states_.resize(schedule_.size());
    for (int rank = 0; rank < world_size_; ++rank) {
      state(rank).known = only(rank);
      state(rank).contents.resize(stretch_count());
      for (size_t i = 0; i < stretch_count(); ++i) {
        if (contributes(rank, i)) state(rank).contents[i] = leaf(rank);
      }
    }
  }
  [[nodiscard]] bool contributes(int rank, size_t stretch) const {
    if (algorithm_.collective == Collective::kAllGather) return rank == owners_[stretch];
    if (algorithm_.collective == Collective::kBroadcast) return rank == root_;
    return true;
  }

  // Goes on with `rank` as far as it can; whether it moved.
  bool advance(int rank) {
    RankState& self = state(rank);
    bool moved = false;
    while (self.next < steps_of(rank)) {
      const CollectiveStep& step = step_of(rank, self.next);
      if (!self.sent) {
        send(rank, step);
        moved = true;
      }
      if (step.from != kNobody && !receive(rank, step)) return moved;
      self.sent = false;
      ++self.next;
      moved = true;
    }
    return moved;
  }

  void send(int rank, const CollectiveStep& step) {
    RankState& self = state(rank);
    self.sent = true;
    ++self.round;
    if (step.to == kNobody) return;
    const auto first = self.contents.begin() + static_cast<long>(stretch_at(step.leaving.begin));
    const auto last = self.contents.begin() + static_cast<long>(stretch_at(step.leaving.end()));
    messages_.push_back({rank, step.to, self.next, step.leaving, step.token, self.round, self.known,
                         std::vector<Content>(first, last)});
    self.elements_sent += step.leaving.count;
  }

  // False if it must wait: for the message, or for an earlier one of its own to be taken.
  bool receive(int rank, const CollectiveStep& step) {
    for (const Message& message : messages_) {
      if (message.from == rank && overlap(message.range, step.into)) return false;
    }
    const auto message = std::find_if(messages_.begin(), messages_.end(), [&](const Message& m) {
      return m.from == step.from && m.to == rank;
    });
    if (message == messages_.end()) return false;
    RankState& self = state(rank);
    self.round = std::max(self.round, message->round);
    self.known |= message->known;
    if (message->range != step.into || message->token != step.token) {
      report(rank, self.next, "rank {} step {} sends something else ({})", message->from,
             message->step, to_string(step_of(message->from, message->step)));
    } else {
      take(rank, step, message->contents);
    }
    messages_.erase(message);
    return true;
  }

  void take(int rank, const CollectiveStep& step, const std::vector<Content>& arriving) {
    RankState& self = state(rank);
    const size_t first = stretch_at(step.into.begin);
    for (size_t i = 0; i < arriving.size(); ++i) {
      Content& here = self.contents[first + i];
      if (!step.fold) {
        here = arriving[i];
        continue;
      }
      if (here.contributors == 0 || arriving[i].contributors == 0) {
        report(rank, self.next, "element {} would be folded with nothing", borders_[first + i]);
      }
      if ((here.contributors & arriving[i].contributors) != 0) {
        report(rank, self.next, "element {} would hold a contribution twice", borders_[first + i]);
      }
      here = {here.contributors | arriving[i].contributors, join(here.tree, arriving[i].tree)};
    }
  }

  void check_ends() {
    for (int rank = 0; rank < world_size_; ++rank) {
      if (state(rank).next < steps_of(rank)) report(rank, state(rank).next, "waits for ever");
    }
    for (const Message& message : messages_) {
      report(message.from, message.step, "rank {} never receives this", message.to);
    }
  }

  // Who must have contributed to `stretch` at `rank` in the end; nothing if it does not matter.
  [[nodiscard]] std::optional<RankSet> wanted(int rank, size_t stretch) const {
    switch (algorithm_.collective) {
      case Collective::kAllReduce:
        return everybody_;
      case Collective::kReduceScatter:
        if (rank != owners_[stretch]) return std::nullopt;
        return everybody_;
      case Collective::kAllGather:
        return only(owners_[stretch]);
      case Collective::kBroadcast:
        return only(root_);
      case Collective::kBarrier:
        return std::nullopt;
    }
    return std::nullopt;
  }

  void check_content() {
    for (int rank = 0; rank < world_size_; ++rank) {
      if (algorithm_.collective == Collective::kBarrier && state(rank).known != everybody_) {
        problem("rank {}: leaves the barrier without having heard from all ranks", rank);
      }
      for (size_t i = 0; i < stretch_count(); ++i) {
        const auto want = wanted(rank, i);
        const RankSet have = state(rank).contents[i].contributors;
        if (want && have != *want) {
          problem("rank {}: element {} ends with the contributions of ranks {}, not {}", rank,
                  borders_[i], describe(have), describe(*want));
        }
      }
    }
  }

  void check_association() {
    std::set<uint64_t> trees;
    for (size_t i = 0; i < stretch_count(); ++i) {
      std::set<uint64_t> trees_here;
      for (int rank = 0; rank < world_size_; ++rank) {
        if (wanted(rank, i)) trees_here.insert(state(rank).contents[i].tree);
      }
      if (trees_here.size() > 1) problem("element {}: ranks combine it differently", borders_[i]);
      trees.merge(trees_here);
    }
    const bool reduces = algorithm_.collective == Collective::kAllReduce ||
                         algorithm_.collective == Collective::kReduceScatter;
    if (reduces && algorithm_.layout_invariant && trees.size() > 1) {
      problem("the order of reduction depends on where an element lies ({} orders)", trees.size());
    }
    if (trees.size() == 1) proof_.association = *trees.begin();
  }

  void check_cost() {
    int rounds = 0;
    for (int rank = 0; rank < world_size_; ++rank) {
      rounds = std::max(rounds, state(rank).round);
      const uint64_t formula = algorithm_.elements_sent(rank, world_size_, count_, root_);
      if (state(rank).elements_sent != formula) {
        problem("rank {}: sends {} elements; the formula says {}", rank, state(rank).elements_sent,
                formula);
      }
    }
    if (const int formula = algorithm_.rounds(world_size_); rounds != formula) {
      problem("{} rounds; the formula says {}", rounds, formula);
    }
  }

  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    proof_.problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  [[nodiscard]] std::string describe(RankSet ranks) const {
    std::string text;
    for (int rank = 0; rank < world_size_; ++rank) {
      if ((ranks & only(rank)) != 0) text += fmt::format("{}{}", text.empty() ? "" : " ", rank);
    }
    return fmt::format("{{{}}}", text);
  }

  const Algorithm& algorithm_;
  const Schedule& schedule_;
  size_t count_;
  int root_;
  int world_size_;
  RankSet everybody_;
  Chunks chunks_;
  std::vector<size_t> borders_;  // stretch i is [borders_[i], borders_[i + 1])
  std::vector<int> owners_;      // of each stretch: the rank of its chunk
  std::vector<RankState> states_;
  std::vector<Message> messages_;  // sent and not yet taken, in the order of sending
  Proof proof_;
};

}  // namespace

Proof verify(const Algorithm& algorithm, const Schedule& schedule, size_t count, int root) {
  GXP_ASSERT(!schedule.empty() && schedule.size() <= 64);
  return Replay(algorithm, schedule, count, root).run();
}

}  // namespace gxp
