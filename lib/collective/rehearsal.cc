#include "lib/collective/rehearsal.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <exception>
#include <limits>
#include <map>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/collective/call.h"
#include "lib/collective/communicator_memory.h"
#include "lib/collective/flight_recorder.h"
#include "lib/collective/host_caches.h"
#include "lib/collective/shared_ways.h"
#include "lib/transport/backoff.h"

namespace gxp {
namespace {

using Clock = Deadline::Clock;
using enum Collective;
using enum SharedWay;

constexpr double kOfAllReduce = 0.6;  // of the budget
// Budgets that all-reduces may take where other work on the machine comes in between.
constexpr double kPatience = 5;
constexpr int kMostTimes = 9;          // of a call by one way
constexpr size_t kSmallestCall = 256;  // smaller inputs fit the line
constexpr size_t kLargest = 4 << 20;
constexpr size_t kSmallLargest = 1 << 20;
constexpr size_t kLargestPlaced = 64 << 10;  // larger ones are not copied, so need no comparison
constexpr std::array kWays = {kCopied, kPlaced, kKernel, kTiles};
// The calls that are run, and those that move as much in the same directions.
constexpr std::array kRehearsed = {kAllReduce, kAllGather, kAllToAll, kReduceScatter, kBroadcast};
// All-reduces at fewer sizes do not tell enough to go by.
constexpr size_t kEnough = 64 << 10;
constexpr std::array kAlike = {std::pair(kReduce, kAllReduce), std::pair(kGather, kAllGather),
                               std::pair(kScatter, kBroadcast)};

double seconds_from(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Ordinary memory, whose pages come as they are needed: all of them take a millisecond.
class OwnPages {
 public:
  explicit OwnPages(size_t bytes) : bytes_(bytes) {
    void* const address =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check_sys(address == MAP_FAILED ? -1 : 0, "allocate " + format_bytes(bytes));
    data_ = static_cast<std::byte*>(address);
  }
  ~OwnPages() { munmap(data_, bytes_); }
  OwnPages(const OwnPages&) = delete;
  OwnPages& operator=(const OwnPages&) = delete;
  // The first bytes, present.
  [[nodiscard]] Memory first(size_t bytes) {
    constexpr size_t kPage = 4096;
    for (; present_ < bytes; present_ += kPage) data_[present_] = std::byte{0};
    return {data_, bytes, MemorySpace::kHost};
  }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_;
  size_t present_ = 0;
};

// Like trial_call(): about so many bytes of floats, as many for each rank.
Call call_of(Collective collective, size_t bytes, int world_size) {
  const auto ranks = size_t(world_size);
  const size_t count = std::max<size_t>(1, bytes / sizeof(float) / ranks) * ranks;
  return {.collective = collective, .dtype = DType::kF32, .count = count};
}

class Trials {
 public:
  Trials(SharedExecutor& executor, SharedSpace& space, int rank, int world_size, Deadline deadline)
      : executor_(executor), space_(space), rank_(rank), ranks_(world_size), deadline_(deadline) {}

  // Seconds since run() began; 0 before.
  [[nodiscard]] double seconds() const {
    return start_ == Clock::time_point{} ? 0 : seconds_from(start_);
  }

  // The least of all ranks' values.
  double least_of_all(double value) {
    std::array values = {-value};
    agree(values);
    return -values[0];
  }

  // All-reduces at all sizes, then the other calls as far as the budget goes.
  void run(bool kernel, double budget_s) {
    kernel_ = kernel;
    const size_t beyond_l2 =
        std::clamp(std::bit_ceil(own_caches().l2_bytes), kSmallLargest, kLargest);
    const auto most = size_t(least_of_all(double(beyond_l2)));
    start_ = Clock::now();  // the ranks are together
    OwnPages ordinary(most);
    const CommunicatorMemory placed(space_, kLargestPlaced);
    std::vector<std::pair<Collective, size_t>> trials;
    for (const size_t bytes : sizes_up_to(most)) trials.emplace_back(kAllReduce, bytes);
    const size_t of_all_reduce = trials.size();
    for (const size_t bytes : sizes_up_to(most)) {
      for (const Collective collective : std::span(kRehearsed).subspan(1))
        trials.emplace_back(collective, bytes);
    }
    double passed = 0;
    for (size_t i = 0; i < trials.size(); ++i) {
      const auto& [collective, bytes] = trials[i];
      const bool first = i < of_all_reduce;
      const double end = first ? kOfAllReduce * budget_s : budget_s;
      if (passed + 4 * last_round_[collective] > (first ? kPatience : 1) * budget_s) continue;
      const size_t left = (first ? of_all_reduce : trials.size()) - i;
      const double share = (end - passed) / double(left);
      passed = measure(collective, bytes, {share, first ? 1 : 0},
                       {ordinary.first(bytes), placed.memory()});
    }
    fill_gaps();
  }

  [[nodiscard]] std::map<std::string, CostCurve, std::less<>> curves() const {
    std::map<std::string, CostCurve, std::less<>> curves;
    const auto add = [&](Collective collective, Collective measured) {
      for (const SharedWay way : kWays) {
        const auto found = least_.find({measured, way});
        if (found != least_.end())
          curves[way_curve_name(way, collective)] = curve_of(found->second);
      }
    };
    for (const Collective collective : kRehearsed) add(collective, collective);
    for (const auto& [collective, alike] : kAlike) add(collective, alike);
    return curves;
  }

 private:
  struct Buffers {
    Memory ordinary;
    Memory placed;
  };
  using Least = std::map<size_t, double>;  // seconds by bytes
  struct Effort {
    double seconds = 0;
    int least_times = 0;
  };

  static std::vector<size_t> sizes_up_to(size_t most) {
    std::vector<size_t> sizes;
    for (size_t bytes = kSmallestCall; bytes < most; bytes *= 4) sizes.push_back(bytes);
    sizes.push_back(most);
    return sizes;
  }

  // Where there was no time for a call, it is taken to go as an all-reduce does.
  void fill_gaps() {
    const Least& all_reduces = least_[{kAllReduce, kTiles}];
    if (all_reduces.empty() || all_reduces.rbegin()->first < kEnough) return least_.clear();
    for (const Collective collective : std::span(kRehearsed).subspan(1)) {
      const Least& tiles = least_[{collective, kTiles}];
      const size_t known = tiles.empty() ? 0 : tiles.rbegin()->first;
      const double scale = known == 0 ? 1 : tiles.at(known) / all_reduces.at(known);
      for (const SharedWay way : kWays) {
        const Least from = least_[{kAllReduce, way}];
        for (const auto& [bytes, seconds] : from) {
          if (bytes > known && is_possible(way, collective, bytes))
            least_[{collective, way}].emplace(bytes, seconds * scale);
        }
      }
    }
    std::erase_if(least_, [](const auto& way) { return way.second.empty(); });
  }

  // Noise may make a larger size look faster than a smaller one.
  static CostCurve curve_of(const Least& least) {
    CostCurve curve;
    double seconds = 0;
    for (auto at = least.rbegin(); at != least.rend(); ++at) {
      seconds = at == least.rbegin() ? at->second : std::min(seconds, at->second);
      curve.points.push_back({double(at->first), seconds});
    }
    std::ranges::reverse(curve.points);
    return curve;
  }

  // Every rank's values become the largest of all ranks'.
  void agree(std::span<double> values) {
    const Call call{.collective = kAllReduce,
                    .dtype = DType::kF64,
                    .op = ReduceOp::kMax,
                    .count = values.size()};
    const Memory data{reinterpret_cast<std::byte*>(values.data()), values.size_bytes(),
                      MemorySpace::kHost};
    executor_.execute(call, data, data, deadline_, {kCopied, kCopied});
  }

  [[nodiscard]] bool is_possible(SharedWay way, Collective collective, size_t bytes) const {
    if (way == kCopied) return largest_input(collective, bytes, ranks_) <= most_copied(ranks_);
    if (way == kPlaced) return bytes <= kLargestPlaced;
    return way != kKernel || kernel_;
  }

  double time(const Call& call, SharedWay way, const Buffers& buffers) {
    const Memory data = way == kPlaced ? buffers.placed : buffers.ordinary;
    const Extents extents = extents_of(call, rank_, ranks_);
    const auto bytes_of = [&](Range range) {
      return data.slice(range.begin * sizeof(float), range.count * sizeof(float));
    };
    const SharedWays ways{way == kCopied ? kCopied : kPlaced, way == kPlaced ? kTiles : way};
    executor_.execute({.collective = kBarrier, .dtype = DType::kF32}, {}, {}, deadline_,
                      {kCopied, kCopied});
    const Clock::time_point start = Clock::now();
    executor_.execute(call, bytes_of(extents.input), bytes_of(extents.output), deadline_, ways);
    return seconds_from(start);
  }

  // By all ways, for so many seconds: first once each, which tells how often, and brings in
  // what they touch. Then in turn, so that a slow moment of the machine meets all, and each twice,
  // since the first time finds the caches as another way has left them. Returns the time that has
  // passed since the beginning, as all ranks see it.
  double measure(Collective collective, size_t bytes, const Effort& effort,
                 const Buffers& buffers) {
    const Call call = call_of(collective, bytes, ranks_);
    std::vector<SharedWay> ways;
    for (const SharedWay way : kWays) {
      if (is_possible(way, collective, bytes)) ways.push_back(way);
    }
    std::vector<double> times;
    for (const SharedWay way : ways) times.push_back(time(call, way, buffers));
    times.push_back(seconds_from(start_));
    agree(times);
    double one_round = 0;
    for (size_t i = 0; i < ways.size(); ++i) one_round += times[i];
    const double passed = times.back();
    const double possible = effort.seconds / std::max(2 * one_round, 1e-9);
    const int more = std::clamp(int(possible), effort.least_times, kMostTimes);
    last_round_[collective] = one_round;
    if (more == 0) return passed;
    times.clear();
    for (int i = 0; i < more; ++i) {
      for (const SharedWay way : ways) {
        static_cast<void>(time(call, way, buffers));
        times.push_back(time(call, way, buffers));
      }
    }
    times.push_back(seconds_from(start_));
    agree(times);
    for (size_t i = 0; i + 1 < times.size(); ++i)
      note(collective, ways[i % ways.size()], bytes, times[i]);
    last_round_[collective] = 0;
    for (const SharedWay way : ways)
      last_round_[collective] += 2 * least_.at({collective, way}).at(bytes);
    return times.back();
  }

  void note(Collective collective, SharedWay way, size_t bytes, double seconds) {
    const auto [at, is_first] = least_[{collective, way}].emplace(bytes, seconds);
    at->second = std::min(at->second, seconds);
  }

  SharedExecutor& executor_;
  SharedSpace& space_;
  int rank_;
  int ranks_;
  Deadline deadline_;
  Clock::time_point start_;
  bool kernel_ = false;
  std::map<std::pair<Collective, SharedWay>, Least> least_;
  std::map<Collective, double> last_round_;  // seconds of all ways, once
};

// Waits without sleeping: for threads that are there for some milliseconds.
class Yields : public SpaceWaiter {
 public:
  void wait_until(const std::function<bool()>& ready, std::span<const int> /*peers*/,
                  Deadline deadline) override {
    while (!ready()) {
      if (deadline.expired()) fail(ErrorKind::kPeer, "measure in shared memory: a thread is late");
      yield_cpu();
    }
  }
  void ring(int /*peer*/) override {}
};

void run_on_cpu(int place) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || place-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    static_cast<void>(sched_setaffinity(0, sizeof one, &one));
    return;
  }
}

}  // namespace

Rehearsal rehearse(SharedExecutor& executor, SharedSpace& space, int rank, int world_size,
                   double budget_s, Deadline deadline) {
  Trials trials(executor, space, rank, world_size, deadline);
  // Three quarters of what goes through staging, and the caller's own data, share the L2 cache.
  const size_t tile = std::min(SharedExecutor::kMostTileBytes, own_caches().l2_bytes / 8);
  Rehearsal done;
  done.kernel = trials.least_of_all(space.reaches_all_memory() ? 1 : 0) > 0;
  done.tile_bytes = size_t(trials.least_of_all(double(tile))) / 4096 * 4096;
  executor.use_tiles_of(done.tile_bytes);
  if (budget_s > 0) trials.run(done.kernel, budget_s);
  done.ways.ranks = world_size;
  done.ways.curves = trials.curves();
  done.seconds = -trials.least_of_all(-trials.seconds());
  return done;
}

Rehearsal rehearse_here(int world_size, bool kernel_copies, double budget_s) {
  const size_t bytes = SharedSpace::segment_bytes(world_size);
  std::vector<ShmSegment> segments;
  for (int rank = 0; rank < world_size; ++rank) {
    segments.push_back(ShmSegment::create(bytes));
    if (kernel_copies) SharedSpace::sign(segments.back(), world_size);
  }
  std::vector<int> members;
  std::vector<pid_t> processes;
  for (int rank = 0; rank < world_size; ++rank) {
    members.push_back(rank);
    processes.push_back(kernel_copies ? getpid() : 0);
  }
  const bool crowded = world_size > usable_cpus();
  std::vector<Rehearsal> done(members.size());
  std::vector<std::exception_ptr> errors(members.size());
  const Deadline deadline = Deadline::after(std::chrono::seconds(5));
  const auto take_part = [&](int rank) {
    try {
      if (!crowded) run_on_cpu(rank);
      std::vector<ShmSegment> mapped;
      for (const ShmSegment& segment : segments)
        mapped.push_back(ShmSegment::map(Fd(dup(segment.fd())), bytes));
      SharedSpace space(rank, std::move(mapped), processes, crowded);
      Yields waiter;
      space.attach(waiter);
      FlightRecorder recorder(rank, world_size);
      SharedExecutor executor(space, recorder, members, rank, 0);
      done[size_t(rank)] = rehearse(executor, space, rank, world_size, budget_s, deadline);
    } catch (...) {
      errors[size_t(rank)] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (const int rank : members) threads.emplace_back(take_part, rank);
  }
  for (const std::exception_ptr& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
  return done.front();
}

std::string summary(const Rehearsal& rehearsal) {
  if (rehearsal.ways.curves.empty()) return "not enough, this machine is too busy";
  std::string text;
  const WayLimits limits{.ranks = rehearsal.ways.ranks, .kernel = rehearsal.kernel};
  for (const size_t bytes : {size_t{16} << 10, size_t{256} << 10, size_t{4} << 20}) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", format_bytes(bytes),
                        describe_ways(&rehearsal.ways, kAllReduce, bytes, limits, false));
  }
  return text;
}

}  // namespace gxp
