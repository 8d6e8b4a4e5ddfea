#include "tests/collective/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lib/base/error.h"
#include "lib/collective/algorithm/call.h"
#include "lib/collective/algorithm/hosts.h"
#include "lib/collective/algorithm/reduction_tree.h"
#include "lib/collective/tune/one_port_replay.h"
#include "tests/collective/symbolic_buffer.h"

namespace gxp {
namespace {

// The tree of reduction_tree.h.
uint64_t core_tree(int world_size) {
  const CoreRanks core(0, world_size);
  std::vector<uint64_t> values;
  for (int i = 0; i < core.size(); ++i) {
    const int rank = core.rank_at(i);
    const uint64_t own = leaf(rank).tree;
    values.push_back(i < core.pairs() ? join(own, leaf(rank + 1).tree) : own);
  }
  for (size_t left = values.size() / 2; left >= 1; left /= 2) {
    for (size_t i = 0; i < left; ++i) values[i] = join(values[2 * i], values[2 * i + 1]);
  }
  return values.front();
}

// What elements must hold at the end: the contributions of these ranks to [origin, ...).
struct Wanted {
  Range range;
  size_t origin;
  RankSet contributors;
};

// One rank in the replay.
struct RankState {
  SymbolicBuffer contents;
  RankSet known;  // from whom it has heard, itself too
  uint64_t elements_sent = 0;
};

class Verifier {
 public:
  Verifier(const Algorithm& algorithm, const Schedule& schedule, const CallShape& shape)
      : algorithm_(algorithm),
        schedule_(schedule),
        shape_(shape),
        everybody_(~RankSet{0} >> (64 - shape.world_size)),
        results_(shape.count) {}

  // Stops where later checks would only echo the cause.
  Proof run() {
    for (int rank = 0; rank < shape_.world_size; ++rank) check_form(rank);
    if (!proof_.problems.empty()) return proof_;
    replay_ = replay_one_port(schedule_);
    proof_.problems = replay_.problems;
    if (!proof_.problems.empty()) return proof_;
    follow_contents();
    if (!proof_.problems.empty()) return proof_;
    for (int rank = 0; rank < shape_.world_size; ++rank) check_content(rank);
    check_association();
    check_cost();
    return proof_;
  }

 private:
  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    proof_.problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void problem_at(int rank, size_t step, fmt::format_string<Args...> format, Args&&... args) {
    proof_.problems.push_back(where(schedule_, rank, step) +
                              fmt::format(format, std::forward<Args>(args)...));
  }
  [[nodiscard]] const std::vector<CollectiveStep>& steps_of(int rank) const {
    return schedule_[size_t(rank)];
  }
  [[nodiscard]] size_t buffer_size(int rank) const {
    return shape_.count + (algorithm_.scratch == nullptr ? 0 : algorithm_.scratch(rank, shape_));
  }
  RankState& state(int rank) { return states_[size_t(rank)]; }

  [[nodiscard]] bool is_peer(int rank, int peer) const {
    return peer == kNobody || (0 <= peer && peer < shape_.world_size && peer != rank);
  }

  void check_form(int rank) {
    const size_t size = buffer_size(rank);
    for (size_t i = 0; i < steps_of(rank).size(); ++i) {
      const CollectiveStep& step = steps_of(rank)[i];
      if (!is_peer(rank, step.to) || !is_peer(rank, step.from)) problem_at(rank, i, "no such peer");
      if (step.leaving.end() > size || step.into.end() > size) {
        problem_at(rank, i, "exceeds the buffer of {} elements", size);
      }
      const bool fills_and_reads = step.local || (step.to != kNobody && step.from != kNobody);
      if (fills_and_reads && overlap(step.leaving, step.into)) {
        problem_at(rank, i, "fills what it reads");
      }
      if (step.local && step.leaving.count != step.into.count) {
        problem_at(rank, i, "moves {} elements into {}", step.leaving.count, step.into.count);
      }
    }
  }

  void follow_contents() {
    const Call call{
        .collective = algorithm_.collective, .count = shape_.count, .root = shape_.root};
    for (int rank = 0; rank < shape_.world_size; ++rank) {
      states_.push_back({SymbolicBuffer(buffer_size(rank)), only(rank)});
      const Range input = extents_of(call, rank, shape_.world_size).input;
      state(rank).contents.place(input, leaf(rank));
    }
    std::vector<RankSet> known(replay_.messages.size());  // to the sender
    std::vector<std::vector<Stretch>> stretches(replay_.messages.size());
    for (const StepEvent& event : replay_.events) {
      const CollectiveStep& step = steps_of(event.rank)[event.step];
      RankState& self = state(event.rank);
      switch (event.kind) {
        case StepEvent::Kind::kSend:
          self.elements_sent += step.leaving.count;
          known[event.message] = self.known;
          stretches[event.message] = read(event);
          break;
        case StepEvent::Kind::kReceive:
          self.known |= known[event.message];
          fill(event, std::exchange(stretches[event.message], {}));
          break;
        case StepEvent::Kind::kMove:
          fill(event, read(event));
          break;
      }
    }
  }

  std::vector<Stretch> read(const StepEvent& event) {
    const Range range = steps_of(event.rank)[event.step].leaving;
    std::vector<Stretch> stretches = state(event.rank).contents.read(range);
    for (const Stretch& stretch : stretches) {
      if (stretch.content.contributors != 0) continue;
      problem_at(event.rank, event.step, "reads element {}, which holds nothing",
                 range.begin + stretch.range.begin);
      break;
    }
    return stretches;
  }

  void fill(const StepEvent& event, const std::vector<Stretch>& stretches) {
    const CollectiveStep& step = steps_of(event.rank)[event.step];
    SymbolicBuffer& contents = state(event.rank).contents;
    if (!step.fold) return contents.store(stretches, step.into.begin);
    const std::string wrong = contents.fold(stretches, step.into.begin);
    if (!wrong.empty()) problem_at(event.rank, event.step, "{}", wrong);
  }

  [[nodiscard]] std::vector<Wanted> wanted(int rank) const {
    const Range all{0, shape_.count};
    const Chunks chunks(shape_);
    const bool is_root = rank == shape_.root;
    switch (algorithm_.collective) {
      case Collective::kAllReduce:
        return {{all, 0, everybody_}};
      case Collective::kReduce:
        return is_root ? std::vector<Wanted>{{all, 0, everybody_}} : std::vector<Wanted>{};
      case Collective::kReduceScatter:
        return {{chunks[rank], chunks[rank].begin, everybody_}};
      case Collective::kBroadcast:
        return {{all, 0, only(shape_.root)}};
      case Collective::kScatter:
        return {{chunks[rank], chunks[rank].begin, only(shape_.root)}};
      case Collective::kAllGather:
        return wanted_of_each([&](int from) { return chunks[from].begin; });
      case Collective::kGather:
        if (!is_root) return {};
        return wanted_of_each([&](int from) { return chunks[from].begin; });
      case Collective::kAllToAll:
        return wanted_of_each([&](int) { return chunks[rank].begin; });
      case Collective::kBarrier:
        break;
    }
    return {};
  }
  // Each rank's elements from origin_of(it) on, in its chunk.
  template <class OriginOf>
  [[nodiscard]] std::vector<Wanted> wanted_of_each(const OriginOf& origin_of) const {
    std::vector<Wanted> all;
    for (int from = 0; from < shape_.world_size; ++from) {
      all.push_back({Chunks(shape_)[from], origin_of(from), only(from)});
    }
    return all;
  }

  void check_content(int rank) {
    if (algorithm_.collective == Collective::kBarrier && state(rank).known != everybody_) {
      problem("rank {}: leaves the barrier without having heard from all ranks", rank);
    }
    for (const Wanted& want : wanted(rank)) {
      for (const Stretch& stretch : state(rank).contents.read(want.range)) {
        check_stretch(rank, want, stretch);
      }
    }
  }

  void check_stretch(int rank, const Wanted& want, const Stretch& stretch) {
    const size_t element = want.range.begin + stretch.range.begin;
    const size_t origin = want.origin + stretch.range.begin;
    const RankSet have = stretch.content.contributors;
    if (have != want.contributors) {
      problem("rank {}: element {} ends with the contributions of ranks {}, not {}", rank, element,
              describe(have), describe(want.contributors));
    } else if (stretch.origin != origin) {
      problem("rank {}: element {} ends as element {}, not {}", rank, element, stretch.origin,
              origin);
    }
    trees_.insert(stretch.content.tree);
    if (reduces(algorithm_.collective)) check_tree(origin, stretch);
  }

  // Against what the ranks before this one hold for the same elements.
  void check_tree(size_t origin, const Stretch& stretch) {
    const Range elements{origin, stretch.range.count};
    for (const Stretch& other : results_.read(elements)) {
      if (other.content.contributors != 0 && other.content.tree != stretch.content.tree) {
        problem("element {}: ranks combine it differently", origin + other.range.begin);
      }
    }
    results_.place(elements, stretch.content);
  }

  void check_association() {
    if (trees_.size() == 1) proof_.association = *trees_.begin();
    if (!reduces(algorithm_.collective) || !algorithm_.layout_invariant || trees_.empty()) return;
    if (trees_.size() > 1) {
      problem("the order of reduction depends on where an element lies ({} orders)", trees_.size());
    } else if (proof_.association != core_tree(shape_.world_size)) {
      problem("the order of reduction is not that of neighbours first");
    }
  }

  void check_cost() {
    int rounds = 0;
    for (const Message& message : replay_.messages) rounds = std::max(rounds, message.recv_round);
    for (int rank = 0; algorithm_.sent != nullptr && rank < shape_.world_size; ++rank) {
      const uint64_t formula = algorithm_.sent(rank, shape_);
      if (state(rank).elements_sent != formula) {
        problem("rank {}: sends {} elements; the formula says {}", rank, state(rank).elements_sent,
                formula);
      }
    }
    const int formula = algorithm_.rounds(shape_);
    const bool exact = HostsOfCall(shape_).are_equal();
    if (rounds > formula || (exact && rounds < formula)) {
      problem("{} rounds; the formula says {}", rounds, formula);
    }
  }

  [[nodiscard]] std::string describe(RankSet ranks) const {
    std::string text;
    for (int rank = 0; rank < shape_.world_size; ++rank) {
      if ((ranks & only(rank)) != 0) text += fmt::format("{}{}", text.empty() ? "" : " ", rank);
    }
    return fmt::format("{{{}}}", text);
  }

  const Algorithm& algorithm_;
  const Schedule& schedule_;
  const CallShape& shape_;
  RankSet everybody_;
  OnePortReplay replay_;
  std::vector<RankState> states_;
  SymbolicBuffer results_;    // of the ranks checked so far
  std::set<uint64_t> trees_;  // of all elements of the result
  Proof proof_;
};

}  // namespace

Proof verify(const Algorithm& algorithm, const Schedule& schedule, const CallShape& shape) {
  GXP_ASSERT(schedule.size() == size_t(shape.world_size) && schedule.size() <= 64);
  return Verifier(algorithm, schedule, shape).run();
}

}  // namespace gxp
