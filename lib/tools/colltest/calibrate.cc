#include "lib/tools/colltest/calibrate.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/collective/communicator.h"
#include "lib/collective/tune/selection.h"
#include "lib/collective/tune/shared_methods.h"
#include "lib/device/device.h"

namespace gxp {
namespace {

using Clock = Deadline::Clock;
using Curves = std::map<std::string, CostCurve, std::less<>>;

// Each cost is the least of so many medians, taken at times as far apart as the whole calibration
// is long: other work on the machine, or ranks that happen to share a core, then spoil it seldom.
constexpr int kPasses = 3;
constexpr double kBudget = 0.004;  // seconds for the trials of one size in one pass
constexpr size_t kSmallest = 8;    // bytes
// Seconds that the best algorithm is predicted to take with the largest size at which all of them
// run; from there on the curves go on in proportion. It bounds what slow networks cost.
constexpr double kLongest = 0.03;
constexpr double kLeast = 1e-9;  // seconds; a difference of two medians may come out as nothing

std::vector<size_t> sizes_up_to(size_t most) {
  std::vector<size_t> sizes;
  // Closer where caches end.
  for (size_t bytes = kSmallest; bytes <= most; bytes *= bytes < (32 << 10) ? 4 : 2) {
    sizes.push_back(bytes);
  }
  return sizes;
}

double median_of_slowest(Communicator& comm, std::vector<double>& times) {
  comm.all_reduce(memory_of(times), DType::kF64, ReduceOp::kMax);
  const auto middle = times.begin() + ptrdiff_t(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

double timed(Communicator& comm, const TimedBody& body) {
  comm.barrier();
  const Clock::time_point start = Clock::now();
  body();
  return seconds_since(start);
}

// Noise may make a larger size look faster than a smaller one: such neighbours get their mean
// (isotonic regression by pooling adjacent violators; Ayer et al., Ann. Math. Stat. 26(4), 1955).
void make_ascend(CostCurve& curve) {
  struct Pool {
    double sum = 0;
    size_t count = 0;
    [[nodiscard]] double mean() const { return sum / double(count); }
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

// One host's ranks, or one rank of each host.
class Calibration {
 public:
  Calibration(Communicator& comm, size_t most_bytes)
      : comm_(comm),
        most_(most_bytes),
        most_message_(most_bytes / 4),
        data_(device_->allocate(std::max(most_message_ * size_t(comm.world_size()), most_),
                                MemoryKind::kWorkspace)) {}

  // Measures all constants once; an earlier pass's result remains where it is less. All constants
  // of one size come before the next size, so that they are compared as of the same moment.
  void measure_constants() {
    measure_swap();
    comm_.set_selection({.algorithm = "ring"});
    for (const size_t bytes : sizes_up_to(most_message_)) {
      measure_exchange(bytes);
      measure_hop(bytes);
      measure_work(bytes);
    }
    comm_.set_selection({});
  }

  // Measures all algorithms once, as the model would run them. `shared`: memory that the ranks
  // reach without messages; null if there is none.
  void measure_algorithms(const CostModel& model, const CommunicatorMemory* shared) {
    for (const size_t bytes : sizes_up_to(most_)) {
      for (const Collective collective : collectives()) {
        if (collective == Collective::kBarrier && bytes > kSmallest) continue;
        if (shared != nullptr) measure_shared(collective, bytes, shared->memory());
        if (is_trial_size(bytes)) measure_by_messages(collective, bytes, model);
      }
    }
    comm_.set_selection({});
  }

  [[nodiscard]] Curves curves() const {
    Curves curves;
    for (const auto& [name, least] : least_) {
      CostCurve& curve = curves[name];
      for (const auto& [bytes, seconds] : least) curve.points.push_back({double(bytes), seconds});
    }
    // Three costs were measured together with others.
    for (size_t i = 0; i < curves.at("fold").points.size(); ++i)
      curves["fold"].points[i].seconds -= curves["exchange"].points[i].seconds;
    double& swap = curves["swap"].points[0].seconds;
    double& start = curves["start"].points[0].seconds;
    swap = std::max(kLeast, (swap - start) / more_rounds());
    start -= gather_rounds() * swap;
    for (auto& [name, curve] : curves) make_ascend(curve);
    return curves;
  }

 private:
  static constexpr std::string_view kRounds = "halving-doubling";  // of one swap each

  [[nodiscard]] Memory part(size_t index, size_t bytes) {
    return data_.memory().slice(index * most_message_, bytes);
  }

  [[nodiscard]] Memory ordinary(size_t bytes) {
    return bytes <= kSmallPages ? memory_of(small_pages_) : data_.memory();
  }

  void add(const std::string& name, size_t bytes, double seconds) {
    const auto [at, is_first] = least_[name].emplace(bytes, seconds);
    at->second = std::min(at->second, seconds);
  }

  [[nodiscard]] CallShape small_shape() const {
    return {.world_size = comm_.world_size(), .count = size_t(comm_.world_size())};
  }
  [[nodiscard]] int gather_rounds() const {
    return find_algorithm(kRounds, Collective::kAllGather)->rounds(small_shape());
  }

  // An all-reduce is the rounds of an all-gather and of a reduce-scatter, which are as many.
  [[nodiscard]] int more_rounds() const {
    return find_algorithm(kRounds, Collective::kAllReduce)->rounds(small_shape()) - gather_rounds();
  }

  void measure_swap() {
    comm_.set_selection({.algorithm = std::string(kRounds)});
    const Memory data = part(0, small_shape().count * sizeof(float));
    const std::vector<double> times =
        medians({[&] { comm_.all_gather(data, DType::kF32); },
                 [&] { comm_.all_reduce(data, DType::kF32, ReduceOp::kSum); }});
    add("start", 1, times[0]);
    add("swap", 1, times[1]);
  }

  // A ring's all-gather is world_size - 1 exchanges, its reduce-scatter as many with folds.
  void measure_exchange(size_t bytes) {
    const int rounds = comm_.world_size() - 1;
    const Memory data = data_.memory().slice(0, bytes * size_t(comm_.world_size()));
    const std::vector<double> times =
        medians({[&] { comm_.all_gather(data, DType::kF32); },
                 [&] { comm_.reduce_scatter(data, DType::kF32, ReduceOp::kSum); }});
    add("exchange", bytes, times[0] / rounds);
    add("fold", bytes, times[1] / rounds);
  }

  // There and back between two ranks, again and again.
  void measure_hop(size_t bytes) {
    constexpr int kTimes = 4;
    const bool first = comm_.rank() == 0;
    const Memory data = part(0, bytes);
    const auto body = [&] {
      for (int i = 0; i < kTimes && comm_.rank() < 2; ++i) {
        if (first) comm_.send(1, data);
        comm_.recv(first ? 1 : 0, data);
        if (!first) comm_.send(0, data);
      }
    };
    add("hop", bytes, medians({body})[0] / (2 * kTimes));
  }

  void measure_work(size_t bytes) {
    const std::vector<double> times =
        medians({[&] { fold(part(0, bytes), part(1, bytes), DType::kF32, ReduceOp::kSum); },
                 [&] { std::memcpy(part(0, bytes).data, part(1, bytes).data, bytes); }});
    add("fold-later", bytes, times[0]);
    add("copy", bytes, times[1]);
  }

  // The sizes at which algorithms run by messages: the largest, and steps of 4 below.
  [[nodiscard]] bool is_trial_size(size_t bytes) const {
    return bytes == most_ || std::countr_zero(bytes / kSmallest) % 2 == 0;
  }

  // Each method apart: it finds the caches as it left them.
  void measure_shared(Collective collective, size_t bytes, Memory shared) {
    const Call call = trial_call(collective, bytes, comm_.world_size());
    const auto seconds_in = [&](Memory memory) {
      return medians({[&] { comm_.run_in_place(call, memory.slice(0, call.bytes())); }})[0];
    };
    if (collective == Collective::kBarrier) {
      const double seconds = seconds_in(shared);
      for (const MemoryOrigin origin : kMemoryOrigins)
        add(shared_curve_name(collective, origin), bytes, seconds);
      return;
    }
    for (const SharedMethod method :
         {SharedMethod::kCopied, SharedMethod::kCma, SharedMethod::kTiles}) {
      comm_.set_selection({.algorithm = std::string(to_string(method))});
      if (comm_.plan(call).method != method) continue;  // the OS may refuse, and not all is copied
      add(method_curve_name(method, collective), bytes, seconds_in(ordinary(bytes)));
      if (method != SharedMethod::kTiles) continue;  // then communicator memory is not copied
      add(method_curve_name(SharedMethod::kPlaced, collective), bytes, seconds_in(shared));
    }
  }

  void measure_by_messages(Collective collective, size_t bytes, const CostModel& model) {
    const AlgorithmPlan best = select_algorithm(
        {.collective = collective, .dtype = DType::kF32, .count = bytes / sizeof(float)},
        {.layout_invariant = false}, model, MemoryOrigin::kOrdinary);
    if (bytes > kSmallest && best.predicted_seconds > kLongest) return;
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.collective == collective && !model.in_shared_memory(algorithm))
        measure(algorithm, bytes, model);
    }
  }

  void measure(const Algorithm& algorithm, size_t bytes, const CostModel& model) {
    const Call call = trial_call(algorithm.collective, bytes, comm_.world_size());
    SelectionSettings settings{.algorithm = std::string(algorithm.name)};
    const AlgorithmPlan plan = select_algorithm(call, settings, model, MemoryOrigin::kOrdinary);
    settings.segment_bytes = plan.segment_bytes;
    comm_.set_selection(settings);
    const auto body = [&] { comm_.run_in_place(call, ordinary(bytes).slice(0, call.bytes())); };
    add(message_curve_name(algorithm), bytes, medians({body})[0]);
  }

  std::vector<double> medians(std::initializer_list<TimedBody> bodies) {
    return median_seconds(comm_, bodies, kBudget);
  }

  Communicator& comm_;
  size_t most_;          // of a buffer
  size_t most_message_;  // beyond it, time is proportional
  std::unique_ptr<Device> device_ = make_cpu_device();
  Buffer data_;
  std::vector<std::byte> small_pages_ = std::vector<std::byte>(kSmallPages);
  std::map<std::string, std::map<size_t, double>> least_;  // by curve and bytes
};

// `profile`: what was measured before, the same on every rank.
void add_link(Profile& profile, Communicator& group, bool inside, size_t most_bytes) {
  Calibration calibration(group, most_bytes);
  for (int i = 0; i < kPasses; ++i) calibration.measure_constants();
  profile.links.push_back({.transport = std::string(group.transport_name()),
                           .ranks = group.world_size(),
                           .hosts = inside ? 1 : group.world_size(),
                           .curves = calibration.curves()});
  const CommunicatorMemory memory = group.allocate(most_bytes);
  const CommunicatorMemory* const shared = inside && memory.shared() ? &memory : nullptr;
  const CostModel model({.world_size = group.world_size(),
                         .hosts = group.hosts(),
                         .transport = group.transport_name(),
                         .shared_arena = shared != nullptr},
                        profile);
  for (int i = 0; i < kPasses; ++i) calibration.measure_algorithms(model, shared);
  profile.links.back().curves = calibration.curves();
  if (shared != nullptr) profile = with_methods(profile, profile.links.back(), true);
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

std::vector<double> median_seconds(Communicator& comm, std::span<const TimedBody> bodies,
                                   double budget_s) {
  constexpr double kLeastTimes = 1;
  constexpr double kMostTimes = 101;
  std::vector<double> first;  // also touches what it uses
  for (const TimedBody& body : bodies) first.push_back(timed(comm, body));
  const double slowest = median_of_slowest(comm, first);
  const auto times = int(std::clamp(budget_s / slowest, kLeastTimes, kMostTimes));
  std::vector<std::vector<double>> taken(bodies.size());
  for (int i = 0; i < times; ++i) {
    for (size_t b = 0; b < bodies.size(); ++b) taken[b].push_back(timed(comm, bodies[b]));
  }
  std::vector<double> medians;
  for (std::vector<double>& of_body : taken) medians.push_back(median_of_slowest(comm, of_body));
  return medians;
}

Profile calibrate(Communicator& comm, size_t most_bytes) {
  bool leads = true;  // its host's ranks
  for (int rank = 0; rank < comm.rank(); ++rank) leads &= !comm.share_host(rank, comm.rank());
  const std::unique_ptr<Communicator> inside =
      comm.split(comm.share_host(0, comm.rank()) ? 0 : -1, 0);
  const std::unique_ptr<Communicator> between = comm.split(leads ? 0 : -1, 0);
  Profile profile{.machine = this_machine()};
  const auto add = [&](Communicator* group, bool is_inside) {
    if (group != nullptr && group->world_size() > 1) {
      profile = take_from_rank_0(*group, profile);  // other hosts know nothing of its links yet
      add_link(profile, *group, is_inside, most_bytes);
    }
    comm.barrier();  // the others are idle meanwhile
  };
  add(inside.get(), true);
  add(between.get(), false);
  return take_from_rank_0(comm, profile);
}

}  // namespace gxp
