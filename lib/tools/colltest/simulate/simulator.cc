#include "lib/tools/colltest/simulate/simulator.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <numeric>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/collective/algorithm/schedule.h"

namespace gxp {
namespace {

// The steps of an algorithm, rank by rank in order, in bounded memory: a rank's steps are recorded
// one window at a time, by running the algorithm again and skipping what has been used. With
// w windows the algorithm runs w times, on average half through.
class StepSource {
 public:
  // A window has this many steps, > 0.
  StepSource(const Algorithm& algorithm, const CallShape& shape, size_t window);

  // The rank's next step, valid until the next call for that rank; null after the last.
  const CollectiveStep* next(int rank);

 private:
  struct Window {
    std::vector<CollectiveStep> steps;
    size_t first = 0;  // index of steps[0] among the rank's
    size_t used = 0;
    bool is_last = false;
  };

  void record(int rank, size_t first);

  const Algorithm& algorithm_;
  CallShape shape_;
  size_t window_;
  std::vector<Window> ranks_;
};

// Leaves an algorithm's function early.
struct WindowIsFull {};

StepSource::StepSource(const Algorithm& algorithm, const CallShape& shape, size_t window)
    : algorithm_(algorithm), shape_(shape), window_(window), ranks_(size_t(shape.world_size)) {
  GXP_ASSERT(window > 0);
}

const CollectiveStep* StepSource::next(int rank) {
  Window& window = ranks_[size_t(rank)];
  if (window.used == window.steps.size() && !window.is_last) {
    record(rank, window.first + window.used);
  }
  return window.used == window.steps.size() ? nullptr : &window.steps[window.used++];
}

void StepSource::record(int rank, size_t first) {
  Window& window = ranks_[size_t(rank)];
  window.steps.clear();
  window.first = first;
  window.used = 0;
  size_t skipped = 0;
  try {
    for_each_step(algorithm_, rank, shape_, [&](const CollectiveStep& step) {
      if (skipped++ < first) return;
      if (window.steps.size() == window_) throw WindowIsFull{};
      window.steps.push_back(step);
    });
    window.is_last = true;
  } catch (const WindowIsFull&) {  // the rest comes with the next window
  }
}

enum class Phase : uint8_t {
  kReady,          // to begin its next step
  kWaitsForSends,  // of what the step overwrites
  kReceives,
  kDone,
};

struct Sending {
  uint32_t packets;  // that have not arrived
  Range range;
};

struct Arrival {
  double time = 0;
  uint64_t bytes = 0;
  uint32_t segments = 0;
};

struct SimulatedRank {
  double now = 0;  // may be ahead of the clock: what arrives until then waits for the rank
  double sends_done = 0;
  Phase phase = Phase::kReady;
  CollectiveStep step;
  double step_began = 0;
  uint64_t missing_segments = 0;  // of what the step receives
  uint64_t missing_bytes = 0;
  uint32_t first_message = 0;   // number of the first of:
  std::deque<Sending> sending;  // messages, from the first that has not arrived
  // What the rank does not wait for yet: by sender, of each in the order of arrival.
  std::multimap<int, Arrival> early;
};

class Simulator {
 public:
  Simulator(const Algorithm& algorithm, const CallShape& shape, DType dtype,
            const SimulatedNetwork& network, const SimulationOptions& options)
      : algorithm_(algorithm),
        shape_(shape),
        network_(network),
        options_(options),
        element_bytes_(size_of(dtype)),
        segment_elements_(round_up(options.segment_bytes, 64) / element_bytes_),
        overhead_(network.overhead_seconds()),
        steps_(algorithm, shape, window_of(shape, options)),
        links_(network.links()),
        ranks_(size_t(shape.world_size)) {
    GXP_ASSERT(options.segment_bytes > 0 && options.max_packets > 0);
    result_.bytes_sent.resize(ranks_.size());
    result_.messages_sent.resize(ranks_.size());
  }

  SimulationResult run() {
    for (int rank = 0; rank < shape_.world_size; ++rank) advance(rank);
    while (const auto arrival = links_.next()) {
      receive(arrival->time, arrival->packet);
      finish_sending(arrival->time, arrival->packet);
    }
    for (int rank = 0; rank < shape_.world_size; ++rank) {
      if (at(rank).phase != Phase::kDone) fail_stuck(rank);
    }
    summarise();
    return std::move(result_);
  }

 private:
  static size_t window_of(const CallShape& shape, const SimulationOptions& options) {
    const size_t steps = options.steps_bytes / sizeof(CollectiveStep) / size_t(shape.world_size);
    return std::max<size_t>(steps, 16);
  }

  SimulatedRank& at(int rank) { return ranks_[size_t(rank)]; }

  [[nodiscard]] uint64_t segments_of(const CollectiveStep& step, Range range) const {
    return step.token ? 1 : (range.count + segment_elements_ - 1) / segment_elements_;
  }

  // Begins steps until one has to wait.
  void advance(int number) {
    SimulatedRank& rank = at(number);
    while (rank.phase == Phase::kReady) {
      const CollectiveStep* step = steps_.next(number);
      if (step == nullptr) {
        rank.phase = Phase::kDone;
        return;
      }
      rank.step = *step;
      rank.step_began = rank.now;
      if (!rank.step.local && rank.step.to != kNobody) send(number, rank);
      rank.phase = Phase::kWaitsForSends;
      go_on(number, rank);
    }
  }

  void send(int number, SimulatedRank& rank) {
    const Range range = rank.step.leaving;
    const uint64_t segments = segments_of(rank.step, range);
    if (segments == 0) return;
    GXP_ASSERT(rank.step.to != number && rank.step.to >= 0 && rank.step.to < shape_.world_size);
    const uint64_t most = network_.has_segments() ? uint64_t(options_.max_packets) : 1;
    const uint64_t packets = std::min(segments, most);
    const auto message = uint32_t(rank.first_message + rank.sending.size());
    rank.sending.push_back({uint32_t(packets), range});
    Packet packet{.from = number, .to = rank.step.to, .message = message};
    const size_t hops = network_.route(number, rank.step.to, route_);
    for (uint64_t i = 0; i < packets; ++i) {
      const uint64_t first = segments * i / packets;
      const uint64_t last = segments * (i + 1) / packets;
      packet.segments = uint32_t(last - first);
      packet.bytes = element_bytes_ * (std::min<uint64_t>(range.count, last * segment_elements_) -
                                       std::min<uint64_t>(range.count, first * segment_elements_));
      rank.now += overhead_ * packet.segments;
      network_.set_work(packet);
      links_.send(rank.now, packet, {route_.data(), hops});
    }
    result_.bytes_sent[size_t(number)] += range.count * element_bytes_;
    result_.messages_sent[size_t(number)] += segments;
  }

  // The second half of a step, unless what it overwrites has still to arrive elsewhere.
  void go_on(int number, SimulatedRank& rank) {
    const auto overlaps = [&](const Sending& s) {
      return s.packets > 0 && overlap(s.range, rank.step.into);
    };
    if (std::ranges::any_of(rank.sending, overlaps)) return;
    if (rank.step.local) {
      const uint64_t bytes = rank.step.into.count * element_bytes_;
      rank.now += bytes == 0       ? 0
                  : rank.step.fold ? network_.fold_seconds(bytes)
                                   : network_.copy_seconds(bytes);
    } else if (rank.step.from != kNobody) {
      rank.missing_segments = segments_of(rank.step, rank.step.into);
      rank.missing_bytes = rank.step.into.count * element_bytes_;
    }
    rank.phase = Phase::kReceives;
    while (rank.missing_segments > 0) {
      const auto first = rank.early.lower_bound(rank.step.from);
      if (first == rank.early.end() || first->first != rank.step.from) return;
      take(number, rank, first->second);
      rank.early.erase(first);
    }
    end_step(number, rank);
  }

  void end_step(int number, SimulatedRank& rank) {
    rank.phase = Phase::kReady;
    if (options_.keep_steps) {
      result_.steps.push_back({number, rank.step_began, rank.now, rank.step});
    }
  }

  void take(int number, SimulatedRank& rank, const Arrival& item) {
    if (item.segments > rank.missing_segments || item.bytes > rank.missing_bytes) {
      fail(ErrorKind::kInternal, "simulate {} {}: rank {} was sent more than it receives in '{}'",
           algorithm_.name, to_string(algorithm_.collective), number, to_string(rank.step));
    }
    rank.missing_segments -= item.segments;
    rank.missing_bytes -= item.bytes;
    rank.now = std::max(rank.now, item.time) + overhead_ * item.segments;
    if (rank.step.fold && item.bytes > 0) rank.now += network_.fold_seconds(item.bytes);
  }

  void receive(double time, const Packet& packet) {
    SimulatedRank& rank = at(packet.to);
    const Arrival item{time, packet.bytes, packet.segments};
    if (rank.phase != Phase::kReceives || rank.step.from != packet.from) {
      rank.early.emplace(packet.from, item);
      return;
    }
    take(packet.to, rank, item);
    if (rank.missing_segments > 0) return;
    end_step(packet.to, rank);
    advance(packet.to);
  }

  void finish_sending(double time, const Packet& packet) {
    SimulatedRank& rank = at(packet.from);
    if (--rank.sending[packet.message - rank.first_message].packets > 0) return;
    for (; !rank.sending.empty() && rank.sending.front().packets == 0; ++rank.first_message) {
      rank.sending.pop_front();
    }
    rank.sends_done = std::max(rank.sends_done, time);
    if (rank.phase != Phase::kWaitsForSends) return;
    rank.now = std::max(rank.now, time);
    go_on(packet.from, rank);
    advance(packet.from);
  }

  [[noreturn]] void fail_stuck(int rank) {
    fail(ErrorKind::kInternal, "simulate {} {}: rank {} waits forever in '{}'", algorithm_.name,
         to_string(algorithm_.collective), rank, to_string(at(rank).step));
  }

  void summarise() {
    for (const SimulatedRank& rank : ranks_) {
      result_.rank_seconds.push_back(std::max(rank.now, rank.sends_done));
      result_.seconds = std::max(result_.seconds, result_.rank_seconds.back());
    }
    const auto& loads = links_.loads();
    for (const auto& load : loads) result_.link_bytes.push_back(load.bytes);
    std::vector<uint32_t> order(loads.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto shown = order.begin() + std::ptrdiff_t(std::min(options_.busiest, order.size()));
    std::ranges::partial_sort(order, shown, [&](uint32_t a, uint32_t b) {
      return loads[a].busy_s > loads[b].busy_s || (loads[a].busy_s == loads[b].busy_s && a < b);
    });
    for (auto link = order.begin(); link != shown && loads[*link].busy_s > 0; ++link) {
      result_.busiest.push_back(
          {network_.name_of(*link), loads[*link].bytes, loads[*link].busy_s / result_.seconds});
    }
    result_.events = links_.events();
  }

  const Algorithm& algorithm_;
  const CallShape& shape_;
  const SimulatedNetwork& network_;
  const SimulationOptions& options_;
  size_t element_bytes_;
  size_t segment_elements_;
  double overhead_;
  StepSource steps_;
  LinkSimulation links_;
  std::vector<SimulatedRank> ranks_;
  Cluster::Route route_{};
  SimulationResult result_;
};

void check_placement(const CallShape& shape, const Cluster& cluster,
                     std::span<const int> gpu_of_rank) {
  if (gpu_of_rank.size() != size_t(shape.world_size)) {
    fail(ErrorKind::kConfig, "simulate {} ranks: the rank order lists {} GPUs", shape.world_size,
         gpu_of_rank.size());
  }
  std::vector<bool> used(size_t(cluster.gpus()), false);
  for (const int gpu : gpu_of_rank) {
    if (gpu < 0 || gpu >= cluster.gpus() || used[size_t(gpu)]) {
      fail(ErrorKind::kConfig, "simulate {} ranks: GPU {} is {}", shape.world_size, gpu,
           gpu < 0 || gpu >= cluster.gpus() ? "not in the cluster" : "named twice");
    }
    used[size_t(gpu)] = true;
  }
}

}  // namespace

SimulationResult simulate(const Algorithm& algorithm, const CallShape& shape, DType dtype,
                          const Cluster& cluster, std::span<const int> gpu_of_rank,
                          const SimulationOptions& options) {
  check_placement(shape, cluster, gpu_of_rank);
  const auto network = make_cluster_network(cluster, gpu_of_rank);
  return Simulator(algorithm, shape, dtype, *network, options).run();
}

SimulationResult simulate(const Algorithm& algorithm, const CallShape& shape, DType dtype,
                          const FlatLinks& links, const SimulationOptions& options) {
  const auto network = make_flat_network(shape, size_of(dtype) * shape.count, links);
  SimulationResult result = Simulator(algorithm, shape, dtype, *network, options).run();
  // Neither a rank's input nor its output is the whole buffer, so messages go through a copy.
  if (algorithm.collective == Collective::kGather || algorithm.collective == Collective::kScatter) {
    const size_t chunk = Chunks(shape)[0].count;
    result.seconds += network->copy_seconds(chunk * size_of(dtype));
  }
  return result;
}

}  // namespace gxp
