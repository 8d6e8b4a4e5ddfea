#include "lib/collective/tune/one_port_replay.h"

#include <fmt/format.h>

#include <algorithm>

namespace gxp {
namespace {

struct RankProgress {
  size_t next = 0;    // step
  bool sent = false;  // the next step's message has left
  int send_round = 0;
  int recv_round = 0;
  std::vector<size_t> untaken;  // own messages that may still be under way
};

// Messages from one rank to another, in order.
struct Pair {
  std::vector<size_t> messages;
  size_t taken = 0;
};

class Replayer {
 public:
  explicit Replayer(const Schedule& schedule)
      : schedule_(schedule), states_(schedule.size()), pairs_(schedule.size() * schedule.size()) {}

  OnePortReplay run() {
    const auto world_size = int(schedule_.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < world_size; ++rank) moved |= advance(rank);
    }
    for (int rank = 0; rank < world_size; ++rank) {
      const size_t next = state(rank).next;
      if (next < steps_of(rank).size()) report(rank, next, "waits forever");
    }
    for (const Message& one : replay_.messages) {
      if (one.recv_round > 0) continue;
      report(one.from, one.send_step, fmt::format("rank {} never receives this", one.to));
    }
    return std::move(replay_);
  }

 private:
  [[nodiscard]] const std::vector<CollectiveStep>& steps_of(int rank) const {
    return schedule_[size_t(rank)];
  }
  [[nodiscard]] const CollectiveStep& sender_step(const Message& message) const {
    return steps_of(message.from)[message.send_step];
  }
  RankProgress& state(int rank) { return states_[size_t(rank)]; }
  Pair& link(int from, int to) { return pairs_[size_t(from) * schedule_.size() + size_t(to)]; }
  void report(int rank, size_t step, std::string_view problem) {
    replay_.problems.push_back(where(schedule_, rank, step).append(problem));
  }

  // Goes on with `rank` as far as it can; whether it moved.
  bool advance(int rank) {
    RankProgress& self = state(rank);
    bool moved = false;
    while (self.next < steps_of(rank).size()) {
      const CollectiveStep& step = steps_of(rank)[self.next];
      if (step.to != kNobody && !self.sent) {
        send(rank, step.to);
        moved = true;
      }
      if ((step.local || step.from != kNobody) && !fill(rank, step)) return moved;
      self.sent = false;
      ++self.next;
      moved = true;
    }
    return moved;
  }

  void send(int rank, int to) {
    RankProgress& self = state(rank);
    const size_t index = replay_.messages.size();
    self.sent = true;
    self.send_round = std::max(self.send_round, self.recv_round) + 1;
    self.untaken.push_back(index);
    link(rank, to).messages.push_back(index);
    replay_.messages.push_back({rank, to, self.next, 0, self.send_round, 0});
    replay_.events.push_back({StepEvent::Kind::kSend, rank, self.next, index});
  }

  // False if it must wait: for an earlier message of its own to be taken, or for the one to come.
  bool fill(int rank, const CollectiveStep& step) {
    if (is_sending_from(rank, step.into)) return false;
    if (step.local) {
      replay_.events.push_back({StepEvent::Kind::kMove, rank, state(rank).next});
      return true;
    }
    Pair& incoming = link(step.from, rank);
    if (incoming.taken == incoming.messages.size()) return false;
    receive(rank, step, incoming.messages[incoming.taken++]);
    return true;
  }

  void receive(int rank, const CollectiveStep& step, size_t index) {
    RankProgress& self = state(rank);
    Message& message = replay_.messages[index];
    self.recv_round = std::max(self.recv_round + 1, message.send_round);
    message.recv_round = self.recv_round;
    message.recv_step = self.next;
    replay_.events.push_back({StepEvent::Kind::kReceive, rank, self.next, index});
    const CollectiveStep& sent = sender_step(message);
    if (sent.leaving.count == step.into.count && sent.token == step.token) return;
    report(rank, self.next,
           fmt::format("rank {} step {} sends something else ({})", message.from, message.send_step,
                       to_string(sent)));
  }

  bool is_sending_from(int rank, Range range) {
    std::vector<size_t>& untaken = state(rank).untaken;
    std::erase_if(untaken, [&](size_t i) { return replay_.messages[i].recv_round > 0; });
    return std::ranges::any_of(untaken, [&](size_t i) {
      return overlap(sender_step(replay_.messages[i]).leaving, range);
    });
  }

  const Schedule& schedule_;
  std::vector<RankProgress> states_;
  std::vector<Pair> pairs_;  // from * world_size + to
  OnePortReplay replay_;
};

}  // namespace

OnePortReplay replay_one_port(const Schedule& schedule) { return Replayer(schedule).run(); }

std::string where(const Schedule& schedule, int rank, size_t step) {
  return fmt::format("rank {} step {} ({}): ", rank, step, to_string(schedule[size_t(rank)][step]));
}

}  // namespace gxp
