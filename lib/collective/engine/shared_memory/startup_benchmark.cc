#include "lib/collective/engine/shared_memory/startup_benchmark.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/base/host_caches.h"
#include "lib/base/thread.h"
#include "lib/collective/algorithm/call.h"
#include "lib/collective/engine/communicator_memory.h"
#include "lib/collective/flight/flight_recorder.h"
#include "lib/collective/tune/shared_methods.h"
#include "lib/device/device.h"
#include "lib/transport/backoff.h"

namespace gxp {
namespace {

using Clock = Deadline::Clock;
using enum Collective;
using enum SharedMethod;

constexpr double kAllReduceShare = 0.6;  // of the budget
// Budgets that small all-reduces may take where other work on the machine comes in between.
constexpr double kPatience = 5;
constexpr int kMaxRepeats = 9;               // timings of each method after the first
constexpr size_t kSmallestCall = 256;        // smaller inputs fit the line
constexpr size_t kLargestPlaced = 64 << 10;  // larger inputs are not copied, so need no comparison
constexpr size_t kHugePage = 2 << 20;
constexpr std::array kMethods = {kCopied, kPlaced, kCma, kTiles};
// The calls that are run, and those that move as much in the same directions.
constexpr std::array kTimed = {kAllReduce, kAllGather, kAllToAll, kReduceScatter, kBroadcast};
// The timings count only if they include an all-reduce of so many bytes.
constexpr size_t kLeastTellingBytes = 64 << 10;
constexpr std::array kAlike = {std::pair(kReduce, kAllReduce), std::pair(kGather, kAllGather),
                               std::pair(kScatter, kBroadcast)};

class Trials {
 public:
  Trials(SharedExecutor& executor, SharedArena& arena, Deadline deadline)
      : executor_(executor),
        arena_(arena),
        rank_(executor.sync().rank()),
        ranks_(executor.sync().world_size()),
        deadline_(deadline) {}

  // Seconds since run() began; 0 before.
  [[nodiscard]] double seconds() const {
    return start_ == Clock::time_point{} ? 0 : seconds_since(start_);
  }

  // The least of all ranks' values.
  double least_of_all(double value) {
    std::array values = {-value};
    agree(values);
    return -values[0];
  }

  // All-reduces at all sizes, then the other calls as far as the budget goes.
  void run(bool use_cma, double budget_s) {
    use_cma_ = use_cma;
    const size_t beyond_l2 =
        std::clamp(2 * std::bit_ceil(own_caches().l2_bytes), kHugePage, 2 * kHugePage);
    most_ = size_t(least_of_all(double(beyond_l2)));
    start_ = Clock::now();  // the ranks are together
    std::vector<std::byte> small_pages(kSmallPages);
    const auto device = make_cpu_device();
    const Buffer huge_pages = device->allocate(most_, MemoryKind::kWorkspace);
    std::memset(huge_pages.memory().data, 0, most_);  // its pages come now
    const CommunicatorMemory placed(arena_, kLargestPlaced);
    const auto buffers = [&](size_t bytes) {
      return Buffers{bytes <= kSmallPages ? memory_of(small_pages) : huge_pages.memory(),
                     placed.memory()};
    };
    time_all_reduces(budget_s, buffers);
    time_others(budget_s, buffers);
    fill_gaps();
  }

  [[nodiscard]] std::map<std::string, CostCurve, std::less<>> curves() const {
    std::map<std::string, CostCurve, std::less<>> curves;
    const auto add = [&](Collective collective, Collective measured) {
      for (const SharedMethod method : kMethods) {
        const auto found = least_.find({measured, method});
        if (found != least_.end())
          curves[method_curve_name(method, collective)] = curve_of(found->second);
      }
    };
    for (const Collective collective : kTimed) add(collective, collective);
    for (const auto& [collective, alike] : kAlike) add(collective, alike);
    return curves;
  }

 private:
  struct Buffers {
    Memory ordinary;
    Memory placed;
  };
  using Least = std::map<size_t, double>;  // seconds by bytes
  using Pages = std::function<Buffers(size_t bytes)>;
  using Sizes = std::vector<size_t>;

  [[nodiscard]] Sizes sizes() const {
    Sizes sizes;
    // Ranks that share CPUs have no time for the largest in small pages.
    const size_t small = arena_.oversubscribed() ? kSmallPages - 1 : kSmallPages;
    for (size_t bytes = kSmallestCall; bytes <= small; bytes *= 4) sizes.push_back(bytes);
    sizes.push_back(most_);
    return sizes;
  }

  // From the smallest on, since each tells what the next will take.
  void time_all_reduces(double budget_s, const Pages& pages) {
    const Sizes all = sizes();
    double last = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const double growth = i == 0 ? 0 : double(all[i]) / double(all[i - 1]);
      if (passed_ + growth * last > (all[i] <= kLeastTellingBytes ? kPatience : 1) * budget_s)
        return;
      const double share = (kAllReduceShare * budget_s - passed_) / double(all.size() - i);
      last = measure(kAllReduce, all[i], share, pages(all[i]));
    }
  }

  // From the largest on, where methods differ most, and the other calls from an all-reduce; the
  // small ones go as that does.
  void time_others(double budget_s, const Pages& pages) {
    const Least all_reduces = least_[{kAllReduce, kTiles}];
    const auto others = std::span(kTimed).subspan(1);
    for (auto at = all_reduces.rbegin();
         at != all_reduces.rend() && at->first >= kLeastTellingBytes; ++at) {
      for (const Collective collective : others) {
        if (passed_ + double(kMethods.size()) * at->second > budget_s) return;
        measure(collective, at->first, 0, pages(at->first));
      }
    }
  }

  // Where there was no time for a call, it is taken to go as an all-reduce does.
  void fill_gaps() {
    const Least& all_reduces = least_[{kAllReduce, kTiles}];
    if (all_reduces.empty() || all_reduces.rbegin()->first < kLeastTellingBytes)
      return least_.clear();
    for (const Collective collective : std::span(kTimed).subspan(1)) {
      const Least known = least_[{collective, kTiles}];
      for (const auto& [bytes, seconds] : all_reduces) {
        if (known.contains(bytes)) continue;
        auto like = known.upper_bound(bytes);
        if (like == known.end() && !known.empty()) --like;
        const double scale = like == known.end() ? 1 : like->second / all_reduces.at(like->first);
        for (const SharedMethod method : kMethods) {
          const Least& from = least_[{kAllReduce, method}];
          if (from.contains(bytes) && is_possible(method, collective, bytes))
            note(collective, method, bytes, from.at(bytes) * scale);
        }
      }
    }
    std::erase_if(least_, [](const auto& method) { return method.second.empty(); });
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

  [[nodiscard]] bool is_possible(SharedMethod method, Collective collective, size_t bytes) const {
    if (method == kCopied)
      return largest_input(collective, bytes, ranks_) <= most_copied(collective, ranks_);
    if (method == kPlaced) return bytes <= kLargestPlaced;
    return method != kCma || use_cma_;
  }

  double time(const Call& call, SharedMethod method, const Buffers& buffers) {
    const Memory data = method == kPlaced ? buffers.placed : buffers.ordinary;
    const Extents extents = extents_of(call, rank_, ranks_);
    const auto bytes_of = [&](Range range) {
      return data.slice(range.begin * sizeof(float), range.count * sizeof(float));
    };
    const SharedMethods methods{method == kCopied ? kCopied : kPlaced,
                                method == kPlaced ? kTiles : method};
    executor_.execute({.collective = kBarrier, .dtype = DType::kF32}, {}, {}, deadline_,
                      {kCopied, kCopied});
    const Clock::time_point start = Clock::now();
    executor_.execute(call, bytes_of(extents.input), bytes_of(extents.output), deadline_, methods);
    return seconds_since(start);
  }

  // By all methods in turn, so that a slow moment of the machine meets all, and each twice, since
  // the first time finds the caches as another method has left them: once, and again for so many
  // seconds. Returns the seconds of a turn without what came in between.
  double measure(Collective collective, size_t bytes, double seconds, const Buffers& buffers) {
    const Call call = trial_call(collective, bytes, ranks_);
    std::vector<SharedMethod> methods;
    for (const SharedMethod method : kMethods) {
      if (is_possible(method, collective, bytes)) methods.push_back(method);
    }
    const auto take_turns = [&](int turns) {
      std::vector<double> taken;
      for (int i = 0; i < turns; ++i) {
        for (const SharedMethod method : methods) {
          if (!arena_.oversubscribed()) time(call, method, buffers);
          taken.push_back(time(call, method, buffers));
        }
      }
      taken.push_back(seconds_since(start_));
      agree(taken);
      for (size_t i = 0; i + 1 < taken.size(); ++i)
        note(collective, methods[i % methods.size()], bytes, taken[i]);
      passed_ = taken.back();
    };
    const auto one_turn = [&] {
      double sum = 0;
      for (const SharedMethod method : methods) sum += least_.at({collective, method}).at(bytes);
      return (arena_.oversubscribed() ? 1 : 2) * std::max(sum, 1e-9);
    };
    take_turns(1);
    const int more = std::clamp(int(seconds / one_turn()), bytes < most_ ? 1 : 0, kMaxRepeats);
    if (more > 0) take_turns(more);
    return one_turn();
  }

  void note(Collective collective, SharedMethod method, size_t bytes, double seconds) {
    const auto [at, is_first] = least_[{collective, method}].emplace(bytes, seconds);
    at->second = std::min(at->second, seconds);
  }

  SharedExecutor& executor_;
  SharedArena& arena_;
  int rank_;
  int ranks_;
  Deadline deadline_;
  Clock::time_point start_;
  bool use_cma_ = false;
  std::map<std::pair<Collective, SharedMethod>, Least> least_;
  size_t most_ = 0;
  double passed_ = 0;  // seconds, as all ranks see it
};

}  // namespace

StartupBenchmark benchmark_startup(SharedExecutor& executor, SharedArena& arena, double budget_s,
                                   Deadline deadline) {
  Trials trials(executor, arena, deadline);
  // What goes through staging, up to three tiles of it at once, shares the L2 cache with the
  // caller.
  const size_t tile = std::min(SharedExecutor::kMostTileBytes, own_caches().l2_bytes / 4);
  StartupBenchmark done;
  done.cma = trials.least_of_all(arena.reaches_all_memory() ? 1 : 0) > 0;
  done.tile_bytes = size_t(trials.least_of_all(double(tile))) / 4096 * 4096;
  executor.use_tiles_of(done.tile_bytes);
  if (budget_s > 0) trials.run(done.cma, budget_s);
  done.methods.ranks = executor.sync().world_size();
  done.methods.curves = trials.curves();
  done.seconds = -trials.least_of_all(-trials.seconds());
  return done;
}

namespace {

// Waits without sleeping: for threads that are there for some milliseconds.
class Yields : public ArenaWaiter {
 public:
  void wait_until(const std::function<bool()>& ready, std::span<const int> /*peers*/,
                  Deadline deadline) override {
    while (!ready()) {
      if (deadline.expired()) fail(ErrorKind::kPeer, "measure in shared memory: a thread is late");
      yield_cpu();
    }
  }
  void wake(int /*peer*/) override {}
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

// For ranks that are threads here: each rank's arena.
std::vector<ShmSegment> segments_of_threads(int world_size, bool use_cma) {
  // One of each rank's that is made here, and one that each thread maps.
  const size_t bytes = SharedArena::segment_bytes(world_size, world_size * (world_size + 1));
  if (bytes == 0)
    fail(ErrorKind::kIo,
         "measure in shared memory: too little address space is left (ulimit -v) for {} ranks",
         world_size);
  std::vector<ShmSegment> segments;
  for (int rank = 0; rank < world_size; ++rank) {
    segments.push_back(ShmSegment::create(bytes));
    if (use_cma) SharedArena::sign(segments.back(), world_size);
  }
  return segments;
}

// benchmark_startup() on this thread, which is that rank.
StartupBenchmark benchmark_thread(std::span<const ShmSegment> segments, int rank, bool use_cma,
                                  double budget_s, Deadline deadline) {
  const int world_size = int(segments.size());
  const bool oversubscribed = world_size > usable_cpus();
  if (!oversubscribed) run_on_cpu(rank);
  std::vector<ShmSegment> mapped;
  for (const ShmSegment& segment : segments)
    mapped.push_back(ShmSegment::map(Fd(dup(segment.fd())), segment.memory().bytes));
  const std::vector<pid_t> processes(segments.size(), use_cma ? getpid() : 0);
  SharedArena arena(rank, std::move(mapped), processes, oversubscribed);
  Yields waiter;
  arena.attach(waiter);
  FlightRecorder recorder(rank, world_size);
  std::vector<int> members(segments.size());
  std::iota(members.begin(), members.end(), 0);
  SharedExecutor executor(arena, recorder, std::move(members), rank, 0);
  return benchmark_startup(executor, arena, budget_s, deadline);
}

}  // namespace

StartupBenchmark benchmark_here(int world_size, bool use_cma, double budget_s) {
  const std::vector<ShmSegment> segments = segments_of_threads(world_size, use_cma);
  std::vector<StartupBenchmark> done(segments.size());
  std::vector<std::exception_ptr> errors(segments.size());
  const Deadline deadline = Deadline::after(std::chrono::seconds(5));
  const auto take_part = [&](int rank) {
    try {
      done[size_t(rank)] = benchmark_thread(segments, rank, use_cma, budget_s, deadline);
    } catch (...) {
      errors[size_t(rank)] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < world_size; ++rank)
      threads.push_back(start_thread("of a timed rank", [&, rank] { take_part(rank); }));
  }
  for (const std::exception_ptr& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
  return done.front();
}

std::string summary(const StartupBenchmark& measured) {
  if (measured.methods.curves.empty()) return "nothing, since this machine is too busy";
  std::string text;
  const MethodLimits limits{.ranks = measured.methods.ranks, .cma = measured.cma};
  for (const size_t bytes : {size_t{16} << 10, size_t{256} << 10, size_t{4} << 20}) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", format_bytes(bytes),
                        describe_methods(&measured.methods, kAllReduce, bytes, limits, false));
  }
  return text;
}

}  // namespace gxp
