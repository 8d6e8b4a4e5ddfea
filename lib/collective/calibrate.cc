#include "lib/collective/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/deadline.h"

namespace gxp {
namespace {

using Clock = Deadline::Clock;

constexpr double kBudget = 0.015;  // seconds for the trials of one size
constexpr double kLeast = 1e-9;    // seconds; a difference of two medians may come out as nothing

std::vector<size_t> sizes_up_to(size_t most) {
  std::vector<size_t> sizes;
  // Closer where caches end.
  for (size_t bytes = 8; bytes <= most; bytes *= bytes < (32 << 10) ? 4 : 2) {
    sizes.push_back(bytes);
  }
  return sizes;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median_of_slowest(Communicator& comm, std::vector<double>& times) {
  comm.all_reduce(memory_of(times), DType::kF64, ReduceOp::kMax);
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

using Body = std::function<void()>;

double timed(Communicator& comm, const Body& body) {
  comm.barrier();
  const Clock::time_point start = Clock::now();
  body();
  return seconds_since(start);
}

// Of each body; their trials take turns, so that a slow moment of the machine meets all.
std::vector<double> medians(Communicator& comm, std::initializer_list<Body> bodies) {
  constexpr int kLeastTrials = 5;
  constexpr double kMostTrials = 101;
  std::vector<double> first;
  for (const Body& body : bodies) timed(comm, body);  // first touch
  for (const Body& body : bodies) first.push_back(timed(comm, body));
  const double slowest = median_of_slowest(comm, first);
  const int trials = std::max(kLeastTrials, int(std::min(kMostTrials, kBudget / slowest)));
  std::vector<std::vector<double>> times(bodies.size());
  for (int i = 0; i < trials; ++i) {
    for (size_t b = 0; b < bodies.size(); ++b) times[b].push_back(timed(comm, bodies.begin()[b]));
  }
  std::vector<double> result;
  for (std::vector<double>& of_body : times) result.push_back(median_of_slowest(comm, of_body));
  return result;
}

// Noise may make a larger size look faster than a smaller one: such neighbours get their mean
// (isotonic regression by pooling adjacent violators; Ayer et al., Ann. Math. Stat. 26(4), 1955).
void make_ascend(CostCurve& curve) {
  struct Pool {
    double sum = 0;
    size_t count = 0;
    [[nodiscard]] double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Pool> pools;
  for (const CostCurve::Point& point : curve.points) {
    pools.push_back({std::max(kLeast, point.seconds), 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().count += last.count;
    }
  }
  auto point = curve.points.begin();
  for (const Pool& pool : pools) {
    for (size_t i = 0; i < pool.count; ++i) (point++)->seconds = pool.mean();
  }
}

CostCurve measure_curve(size_t most, const std::function<double(size_t bytes)>& measure) {
  CostCurve curve;
  for (const size_t bytes : sizes_up_to(most)) {
    curve.points.push_back({static_cast<double>(bytes), measure(bytes)});
  }
  make_ascend(curve);
  return curve;
}

// One host's ranks, or one rank of each host.
class Calibration {
 public:
  Calibration(Communicator& comm, size_t most_bytes)
      : comm_(comm),
        most_(most_bytes),
        most_message_(most_bytes / 4),
        data_(std::max(most_message_ * size_t(comm.world_size()), most_)) {}

  void measure_messages(LinkClass& link) {
    measure_swap(link.curves);
    comm_.use({.algorithm = "ring"});
    const std::vector<size_t> sizes = sizes_up_to(most_message_);
    for (const size_t bytes : sizes) {
      measure_exchange(bytes, link.curves);
      const auto add = [&](const std::string& name, double seconds) {
        link.curves[name].points.push_back({double(bytes), seconds});
      };
      add("hop", measure_hop(bytes));
      add("fold-later", median_seconds(comm_, [&] {
            fold(part(0, bytes), part(1, bytes), DType::kF32, ReduceOp::kSum);
          }));
      add("copy", median_seconds(comm_, [&] {
            std::memcpy(part(0, bytes).data, part(1, bytes).data, bytes);
          }));
    }
    for (auto& [name, curve] : link.curves) make_ascend(curve);
    comm_.use({});
  }

  void measure_native(LinkClass& link) {
    comm_.use({.algorithm = "direct"});
    const CommunicatorMemory shared = comm_.allocate(most_);
    for (const Collective collective : collectives()) {
      if (!shared.shared()) break;
      for (const bool staged : {false, true}) {
        const Memory memory = staged ? memory_of(data_).slice(0, most_) : shared.memory();
        link.curves[native_curve_name(collective, staged)] = measure_curve(
            most_, [&](size_t n) { return measure_collective(collective, memory, n); });
      }
    }
    comm_.use({});
  }

 private:
  using Curves = decltype(LinkClass::curves);

  [[nodiscard]] Memory part(size_t index, size_t bytes) {
    return memory_of(data_).slice(index * most_message_, bytes);
  }

  // An all-reduce is the rounds of an all-gather and of a reduce-scatter, which are as many.
  void measure_swap(Curves& curves) {
    const std::string name = "halving-doubling";
    comm_.use({.algorithm = name});
    const CallShape shape{.world_size = comm_.world_size(), .count = size_t(comm_.world_size())};
    const auto rounds_of = [&](Collective collective) {
      return find_algorithm(name, collective)->rounds(shape);
    };
    const int rounds = rounds_of(Collective::kAllGather);
    const int more = rounds_of(Collective::kAllReduce) - rounds;
    const Memory data = part(0, shape.count * sizeof(float));
    const std::vector<double> times =
        medians(comm_, {[&] { comm_.all_gather(data, DType::kF32); },
                        [&] { comm_.all_reduce(data, DType::kF32, ReduceOp::kSum); }});
    const double swap = std::max(kLeast, (times[1] - times[0]) / more);
    curves["swap"].points.push_back({1, swap});
    curves["start"].points.push_back({1, std::max(kLeast, times[0] - rounds * swap)});
  }

  // A ring's all-gather is world_size - 1 exchanges, its reduce-scatter as many with folds.
  void measure_exchange(size_t bytes, Curves& curves) {
    const int rounds = comm_.world_size() - 1;
    const Memory data = memory_of(data_).slice(0, bytes * size_t(comm_.world_size()));
    const std::vector<double> times =
        medians(comm_, {[&] { comm_.all_gather(data, DType::kF32); },
                        [&] { comm_.reduce_scatter(data, DType::kF32, ReduceOp::kSum); }});
    curves["exchange"].points.push_back({double(bytes), times[0] / rounds});
    curves["fold"].points.push_back({double(bytes), (times[1] - times[0]) / rounds});
  }

  // There and back between two ranks, again and again.
  double measure_hop(size_t bytes) {
    constexpr int kTimes = 4;
    const bool first = comm_.rank() == 0;
    const Memory data = part(0, bytes);
    return median_seconds(comm_,
                          [&] {
                            for (int i = 0; i < kTimes && comm_.rank() < 2; ++i) {
                              if (first) comm_.send(1, data);
                              comm_.recv(first ? 1 : 0, data);
                              if (!first) comm_.send(0, data);
                            }
                          }) /
           (2 * kTimes);
  }

  double measure_collective(Collective collective, Memory memory, size_t bytes) {
    const auto ranks = static_cast<size_t>(comm_.world_size());
    const size_t count = std::max<size_t>(1, bytes / sizeof(float) / ranks) * ranks;
    const Call call{.collective = collective,
                    .dtype = DType::kF32,
                    .count = collective == Collective::kBarrier ? 0 : count};
    return median_seconds(comm_, [&] { run_in_place(call, memory); });
  }

  void run_in_place(const Call& call, Memory data) {
    const auto bytes_of = [&](Range range) {
      return data.slice(range.begin * sizeof(float), range.count * sizeof(float));
    };
    const Extents extents = extents_of(call, comm_.rank(), comm_.world_size());
    comm_.run(call, bytes_of(extents.input), bytes_of(extents.output));
  }

  Communicator& comm_;
  size_t most_;          // of a buffer
  size_t most_message_;  // beyond it, time is proportional
  std::vector<std::byte> data_;
};

LinkClass measure_link(Communicator& group, bool inside, size_t most_bytes) {
  LinkClass link{.transport = std::string(group.transport_name()),
                 .ranks = group.world_size(),
                 .hosts = inside ? 1 : group.world_size()};
  Calibration calibration(group, most_bytes);
  calibration.measure_messages(link);
  if (inside) calibration.measure_native(link);
  return link;
}

std::vector<int> hosts_of(const Communicator& comm) {
  const std::span<const int> hosts = comm.hosts();
  if (hosts.empty()) return std::vector<int>(static_cast<size_t>(comm.world_size()));
  return {hosts.begin(), hosts.end()};
}

Profile take_from_rank_0(Communicator& comm, const Profile& profile) {
  std::string text = to_toml(profile);
  uint64_t bytes = text.size();
  comm.broadcast({reinterpret_cast<std::byte*>(&bytes), sizeof(bytes)}, 0);
  text.resize(bytes);
  comm.broadcast(memory_of(text), 0);
  return parse_profile(text, "of rank 0");
}

}  // namespace

double median_seconds(Communicator& comm, const std::function<void()>& body) {
  return medians(comm, {body})[0];
}

Profile calibrate(Communicator& comm, size_t most_bytes) {
  const std::vector<int> hosts = hosts_of(comm);
  const int host = hosts[static_cast<size_t>(comm.rank())];
  const bool leads = std::ranges::find(hosts, host) - hosts.begin() == comm.rank();
  const std::unique_ptr<Communicator> inside = comm.split(host == hosts[0] ? 0 : -1, 0);
  const std::unique_ptr<Communicator> between = comm.split(leads ? 0 : -1, 0);
  Profile profile{.machine = this_machine()};
  const auto add = [&](Communicator* group, bool is_inside) {
    if (group != nullptr && group->world_size() > 1) {
      profile.links.push_back(measure_link(*group, is_inside, most_bytes));
    }
    comm.barrier();  // the others are idle meanwhile
  };
  add(inside.get(), true);
  add(between.get(), false);
  return take_from_rank_0(comm, profile);
}

}  // namespace gxp
