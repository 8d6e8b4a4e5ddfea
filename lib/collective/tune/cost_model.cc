#include "lib/collective/tune/cost_model.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/collective/algorithm/schedule.h"
#include "lib/collective/tune/one_port_replay.h"

namespace gxp {
namespace {

// Above this many ranks the formulas of the table stand for the recording, which would be too much.
constexpr int kMostRecorded = 64;
// Elements a rank of a recording: small, and even in the parts that algorithms cut.
constexpr size_t kElementsPerRank = 256;

// What one rank does in one round.
struct Load {
  uint64_t sent = 0;
  uint64_t received = 0;
  uint64_t folded = 0;  // on arrival
  uint64_t folded_later = 0;
  uint64_t copied = 0;
  uint64_t sent_away = 0;  // to other hosts
  uint64_t received_from_away = 0;
  bool after_wait = false;     // as Round's
  bool hears_another = false;  // as Round's
  int to = kNobody;
  int from = kNobody;
};

// What all ranks do in each round of the schedule's replay.
class RoundCounter {
 public:
  RoundCounter(Schedule schedule, const CallShape& shape)
      : schedule_(std::move(schedule)),
        shape_(shape),
        ranks_(schedule_.size()),
        sent_in_(ranks_),
        received_in_(ranks_),
        has_heard_(ranks_ * ranks_) {
    leave_out_empty_messages();
  }

  std::vector<Round> count() {
    const OnePortReplay replay = replay_one_port(schedule_);
    for (const StepEvent& event : replay.events) {
      const CollectiveStep& step = schedule_[size_t(event.rank)][event.step];
      if (event.kind == StepEvent::Kind::kMove) {
        Load& mine = load(received_in_[size_t(event.rank)] + 1, event.rank);
        (step.fold ? mine.folded_later : mine.copied) += step.into.count;
      } else if (event.kind == StepEvent::Kind::kSend) {
        send(step, replay.messages[event.message]);
      } else {
        receive(step, replay.messages[event.message]);
      }
    }
    return summary();
  }

 private:
  void leave_out_empty_messages() {
    for (std::vector<CollectiveStep>& steps : schedule_) {
      for (CollectiveStep& step : steps) {
        if (step.local || step.token) continue;
        if (step.leaving.count == 0) step.to = kNobody;
        if (step.into.count == 0) step.from = kNobody;
      }
    }
  }

  [[nodiscard]] int host_of(size_t rank) const { return shape_.host_of(int(rank)); }
  [[nodiscard]] bool is_inside(const Message& message) const {
    return shape_.host_of(message.from) == shape_.host_of(message.to);
  }
  // `round` from 1.
  Load& load(int round, int rank) {
    if (int(loads_.size()) < round) loads_.resize(size_t(round), std::vector<Load>(ranks_));
    return loads_[size_t(round) - 1][size_t(rank)];
  }

  void send(const CollectiveStep& step, const Message& message) {
    Load& mine = load(message.send_round, message.from);
    int& sent_in = sent_in_[size_t(message.from)];
    (is_inside(message) ? mine.sent : mine.sent_away) += step.leaving.count;
    mine.after_wait = received_in_[size_t(message.from)] >= sent_in;
    mine.to = message.to;
    sent_in = message.send_round;
  }

  void receive(const CollectiveStep& step, const Message& message) {
    Load& mine = load(message.recv_round, message.to);
    int& received_in = received_in_[size_t(message.to)];
    (is_inside(message) ? mine.received : mine.received_from_away) += step.into.count;
    if (step.fold) mine.folded += step.into.count;
    mine.from = message.from;
    std::vector<bool>::reference heard =
        has_heard_[size_t(message.to) * ranks_ + size_t(message.from)];
    mine.hears_another = received_in > 0 && !heard;
    heard = true;
    received_in = message.recv_round;
  }

  [[nodiscard]] std::vector<Round> summary() const {
    std::vector<Round> rounds;
    for (size_t number = 0; number < loads_.size(); ++number) {
      Round round = summary_of(loads_[number]);
      round.all_relay = round.all_relay && number > 0;
      const auto like = std::ranges::find_if(rounds, [&](Round known) {
        known.times = round.times;
        return known == round;
      });
      if (like == rounds.end()) {
        rounds.push_back(round);
      } else {
        ++like->times;
      }
    }
    return rounds;
  }

  [[nodiscard]] Round summary_of(const std::vector<Load>& loads) const {
    struct Host {
      uint64_t received = 0, folded = 0, out = 0, in = 0;
    };
    std::map<int, Host> hosts;
    const double whole = std::max<double>(1, double(shape_.count));
    const auto raise = [whole](double& most, uint64_t elements) {
      most = std::max(most, double(elements) / whole);
    };
    Round round{.everybody = true, .all_relay = true};
    for (size_t rank = 0; rank < ranks_; ++rank) {
      const Load& load = loads[rank];
      raise(round.busiest, std::max(load.sent, load.received));
      raise(round.folded, load.folded);
      raise(round.folded_later, load.folded_later);
      raise(round.copied, load.copied);
      round.messages = round.messages || load.from != kNobody;
      round.after_wait = round.after_wait || load.after_wait;
      round.everybody = round.everybody && load.from != kNobody;
      round.hears_another = round.hears_another || load.hears_another;
      round.all_relay = round.all_relay && load.after_wait && load.from != load.to;
      Host& host = hosts[host_of(rank)];
      host.received += load.received;
      host.folded += load.folded;
      host.out += load.sent_away;
      host.in += load.received_from_away;
    }
    for (const auto& [number, host] : hosts) {
      raise(round.moved, host.received);
      raise(round.folded_total, host.folded);
      raise(round.crossing, std::max(host.out, host.in));
    }
    round.all_relay = round.all_relay && round.everybody;
    return round;
  }

  Schedule schedule_;
  const CallShape& shape_;
  size_t ranks_;
  // By rank, the round of its last message; 0: there was none.
  std::vector<int> sent_in_;
  std::vector<int> received_in_;
  std::vector<bool> has_heard_;           // by receiver and sender
  std::vector<std::vector<Load>> loads_;  // by round and rank
};

// Rounds by the algorithm's formula, taken to be equal, for groups of more ranks than are recorded.
std::vector<Round> rounds_by_formula(const Algorithm& algorithm, const CallShape& shape) {
  uint64_t most = 0;
  uint64_t total = 0;
  for (int rank = 0; rank < shape.world_size; ++rank) {
    const uint64_t sent = elements_sent(algorithm, rank, shape);
    most = std::max(most, sent);
    total += sent;
  }
  const int times = std::max(1, algorithm.rounds(shape));
  const double unit = 1.0 / (double(std::max<size_t>(1, shape.count)) * times);
  Round round{.times = times,
              .busiest = double(most) * unit,
              .moved = double(total) * unit,
              .messages = true,
              .after_wait = true,
              .everybody = true};
  // Half of what an all-reduce moves is partial sums.
  const double sums = !reduces(algorithm.collective)                   ? 0
                      : algorithm.collective == Collective::kAllReduce ? 0.5
                                                                       : 1;
  round.folded = round.busiest * sums;
  round.folded_total = round.moved * sums;
  if (!shape.hosts.empty()) round.crossing = round.busiest;
  return {round};
}

std::map<int, int> ranks_by_host(const GroupTopology& topology) {
  std::map<int, int> count;
  for (const int host : topology.hosts) ++count[host];
  if (count.empty()) count[0] = topology.world_size;
  return count;
}

}  // namespace

std::vector<Round> rounds_of(const Algorithm& algorithm, const CallShape& shape) {
  if (shape.world_size > kMostRecorded) return rounds_by_formula(algorithm, shape);
  return RoundCounter(record_schedule(algorithm, shape), shape).count();
}

CostModel::CostModel(const GroupTopology& topology, const Profile& profile)
    : topology_(topology), profile_(&profile) {
  const std::map<int, int> hosts = ranks_by_host(topology);
  for (const auto& [host, ranks] : hosts) host_ranks_ = std::max(host_ranks_, ranks);
  local_ = &find_link(profile, topology.transport, host_ranks_, 1);
  if (hosts.size() > 1) {
    between_ = &find_link(profile, topology.transport, 1, int(hosts.size()));
  }
  crowding_ = profile.machine.ranks_per_core(host_ranks_);
  local_scale_ = crowding_ / profile.machine.ranks_per_core(local_->ranks);
  curves_ = {.start = local_->curve("start"),
             .hop = local_->curve("hop"),
             .swap = local_->curve("swap"),
             .exchange = local_->curve("exchange"),
             .fold = local_->curve("fold"),
             .fold_later = local_->curve("fold-later"),
             .copy = local_->curve("copy")};
  for (const Algorithm& algorithm : algorithms()) recorded_[&algorithm] = record_all(algorithm);
  find_curves(link_of_these_ranks());
}

const LinkClass* CostModel::link_of_these_ranks() const {
  const LinkClass& link = between_ == nullptr ? *local_ : *between_;
  const bool one_kind = between_ == nullptr || host_ranks_ == 1;
  const bool same = link.transport == topology_.transport && link.ranks == topology_.world_size;
  return one_kind && same ? &link : nullptr;
}

void CostModel::find_curves(const LinkClass* link_of_these_ranks) {
  for (const MemoryOrigin origin : kMemoryOrigins) {
    for (const Collective collective : collectives()) {
      shared_[{collective, origin}] = local_->curve(shared_curve_name(collective, origin));
    }
    if (link_of_these_ranks == nullptr) continue;
    for (const Algorithm& algorithm : algorithms()) {
      // Whether the ranks shared memory when the algorithm was measured.
      const bool was_shared = link_of_these_ranks->curve(shared_curve_name(
                                  algorithm.collective, MemoryOrigin::kOrdinary)) != nullptr;
      const bool same_medium =
          algorithm.medium == Medium::kMessages || was_shared == in_shared_memory(algorithm);
      measured_[{&algorithm, origin}] =
          !same_medium                  ? nullptr
          : in_shared_memory(algorithm) ? shared_[{algorithm.collective, origin}]
                                        : link_of_these_ranks->curve(message_curve_name(algorithm));
    }
  }
}

CostModel::Recorded CostModel::record_all(const Algorithm& algorithm) const {
  CallShape shape{.world_size = topology_.world_size,
                  .count = kElementsPerRank * size_t(topology_.world_size),
                  .hosts = topology_.hosts,
                  .orders = topology_.orders};
  const auto rounds_with = [&](double segments) {
    shape.segment = size_t(double(shape.count) / segments);
    return rounds_of(algorithm, shape);
  };
  Recorded recorded{.whole = rounds_with(1), .in_few = rounds_with(kFew), .in_many = {}};
  if (recorded.in_few == recorded.whole) {
    recorded.in_few.clear();
  } else {
    recorded.in_many = rounds_with(kMany);
  }
  return recorded;
}

bool CostModel::pipelined(const Algorithm& algorithm) const {
  return !recorded_.at(&algorithm).in_few.empty();
}

double CostModel::seconds(const Algorithm& algorithm, double bytes, double segment_bytes,
                          MemoryOrigin origin) const {
  if (in_shared_memory(algorithm)) {
    const CostCurve* shared = shared_.at({algorithm.collective, origin});
    if (shared != nullptr) return shared->at(bytes) * local_scale_;
  }
  const Recorded& recorded = recorded_.at(&algorithm);
  const double placing = placing_seconds(algorithm.collective, bytes);
  if (segment_bytes <= 0 || bytes <= segment_bytes || !pipelined(algorithm)) {
    return placing + seconds_of(recorded.whole, {bytes, bytes});
  }
  // A pipeline takes so much for each segment, once it is full.
  const double segments = bytes / segment_bytes;
  const double few = seconds_of(recorded.in_few, {kFew * segment_bytes, bytes});
  if (segments <= kFew) {
    const double one = seconds_of(recorded.whole, {segment_bytes, bytes});
    return placing + one + std::max(0.0, few - one) * (segments - 1) / (kFew - 1);
  }
  const double many = seconds_of(recorded.in_many, {kMany * segment_bytes, bytes});
  return placing + few + std::max(0.0, many - few) * (segments - kFew) / (kMany - kFew);
}

// Where neither a rank's input nor its output is the whole buffer, messages go through a copy.
double CostModel::placing_seconds(Collective collective, double bytes) const {
  if (collective != Collective::kGather && collective != Collective::kScatter) return 0;
  return curves_.copy->at(bytes / topology_.world_size) * local_scale_;
}

std::optional<double> CostModel::measured(const Algorithm& algorithm, double bytes,
                                          MemoryOrigin origin) const {
  const auto found = measured_.find({&algorithm, origin});
  if (found == measured_.end() || found->second == nullptr) return std::nullopt;
  return found->second->at(bytes);
}

bool CostModel::in_shared_memory(const Algorithm& algorithm) const {
  return topology_.shared_arena && algorithm.medium == Medium::kSharedMemory;
}

double CostModel::seconds_of(std::span<const Round> rounds, const Amount& amount) const {
  if (rounds.empty()) return 0;
  const bool all_relay = std::ranges::any_of(rounds, &Round::all_relay);
  double sum = all_relay ? 0 : curves_.start->at(0) * local_scale_;
  const double first_byte = (all_relay ? curves_.exchange : curves_.swap)->at(0);
  for (const Round& round : rounds) sum += round.times * seconds_of(round, first_byte, amount);
  return sum;
}

double CostModel::seconds_of(const Round& round, double first_byte, const Amount& amount) const {
  const auto without_first_byte = [&](const CostCurve& curve, double part, double parts) {
    return std::max(0.0, amount.at(curve, part, parts) - curve.at(0));
  };
  double local = 0;
  if (round.messages) {
    local = std::max(without_first_byte(*curves_.hop, round.busiest, 1),
                     without_first_byte(*curves_.exchange, round.moved / host_ranks_, host_ranks_));
  }
  if (round.after_wait || (round.hears_another && crowding_ > 1)) {
    local += round.everybody ? first_byte : std::min(first_byte, curves_.hop->at(0));
  }
  if (round.folded > 0) {
    // Fewer ranks than all have more of the cores for themselves.
    const double folded = std::max(round.folded / crowding_, round.folded_total / host_ranks_);
    local += amount.at(*curves_.fold, folded, host_ranks_);
  }
  if (round.folded_later > 0) local += amount.at(*curves_.fold_later, round.folded_later, 1);
  if (round.copied > 0) local += amount.at(*curves_.copy, round.copied, 1);
  local *= local_scale_;
  if (round.crossing > 0) {
    local = std::max(local, between_->curve("exchange")->at(amount.bytes * round.crossing));
  }
  return local;
}

}  // namespace gxp
