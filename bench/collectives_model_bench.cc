// How well the cost model of collective/tune/cost_model.h tells what collectives take here.
//   gxp_collectives_model_bench [--transport shm|tcp] [--ranks N] [--profile FILE] [--save FILE]
//                               [--collective NAME] [--passes N] [--quiet 1]
// Ranks are processes on this host. They calibrate (or load FILE), then run every algorithm of
// every collective from 8 B to 64 MiB, float sums in place; with shared memory, `direct` also in
// memory from allocate(). A time is the least of N medians (3) of the slowest rank, taken far
// apart. A row says what an algorithm took, what the model predicts (not what the calibration has
// measured) and what the simulator says over the same profile. At the end: mean absolute relative
// errors, and how far the choice was from the fastest algorithm. Where that is more than 10%, all
// algorithms of the row run again, more often, and both ratios are shown: the calibration's times
// are noisy, and so is the least of several measured here.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/ranks.h"
#include "lib/base/bytes.h"
#include "lib/tools/colltest/calibrate.h"
#include "lib/tools/colltest/simulate/simulator.h"
#include "lib/transport/table/table.h"

namespace gxp {
namespace {

struct Options {
  std::string transport = "shm";
  int ranks = 2;
  std::string profile;     // empty: calibrate
  std::string save;        // empty: do not
  std::string collective;  // empty: all
  int passes = 3;
  bool quiet = false;  // no rows, only the summary
};

constexpr size_t kMost = size_t{64} << 20;
constexpr double kBudget = 0.004;  // seconds for the calls of an algorithm with a size, in a pass
constexpr double kGood = 1.1;      // times the best, for a choice
constexpr int kMorePasses = 10;    // over a row whose choice was not that good

Deadline soon() { return Deadline::after(std::chrono::seconds(600)); }

struct Measured {
  const Algorithm* algorithm = nullptr;
  size_t bytes = 0;
  MemoryOrigin origin = MemoryOrigin::kOrdinary;
  size_t segment_bytes = 0;
  double seconds = 0;
  double predicted = 0;
  double simulated = 0;  // 0: not
};

// A case, and its algorithms that compete: in ordinary memory.
using CaseKey = std::pair<Collective, size_t>;
using Cases = std::map<CaseKey, std::vector<Measured>>;

// How far the choice is from the best.
struct Verdict {
  const Measured* chosen = nullptr;
  const Measured* best = nullptr;
  [[nodiscard]] double ratio() const { return chosen->seconds / best->seconds; }
};

class Bench {
 public:
  Bench(Communicator& comm, const Options& options)
      : comm_(comm), options_(options), shared_(comm.allocate(kMost)), ordinary_(kMost) {}

  void run() {
    const Profile profile = get_profile();
    const CostModel model({.world_size = comm_.world_size(),
                           .hosts = comm_.hosts(),
                           .transport = comm_.transport_name(),
                           .shared_arena = shared_.shared()},
                          profile);
    for (int pass = 0; pass < options_.passes; ++pass) {
      for (const Collective collective : collectives()) {
        if (!options_.collective.empty() && options_.collective != to_string(collective)) continue;
        for (size_t bytes = 8; bytes <= kMost; bytes *= bytes < (8 << 20) ? 4 : 2) {
          measure(collective, bytes, model, measured_);
          if (collective == Collective::kBarrier) break;
        }
      }
    }
    for (const bool invariant : {true, false}) measure_misses_again(model, invariant);
    if (comm_.rank() != 0) return;
    predict(model);
    simulate_all(profile);
    report();
    for (const bool invariant : {true, false}) report_choices(model, invariant);
  }

 private:
  Profile get_profile() {
    if (!options_.profile.empty()) return find_profile(options_.profile, {});
    const auto start = Deadline::Clock::now();
    const Profile profile = calibrate(comm_);
    if (comm_.rank() != 0) return profile;
    fmt::print("calibrated in {:.2f} s\n",
               std::chrono::duration<double>(Deadline::Clock::now() - start).count());
    if (!options_.save.empty()) save_profile(profile, options_.save);
    return profile;
  }

  // All its algorithms. Each runs for a while: to change the algorithm costs time at the next call.
  void measure(Collective collective, size_t bytes, const CostModel& model,
               std::vector<Measured>& rows) {
    const Call call = trial_call(collective, bytes, comm_.world_size());
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.collective != collective) continue;
      const SelectionSettings settings{.algorithm = std::string(algorithm.name)};
      comm_.set_selection(settings);
      for (const MemoryOrigin origin : {MemoryOrigin::kOrdinary, MemoryOrigin::kCommunicator}) {
        if (origin == MemoryOrigin::kCommunicator && !model.in_shared_memory(algorithm)) continue;
        const AlgorithmPlan plan = select_algorithm(call, settings, model, origin);
        const Memory data =
            origin == MemoryOrigin::kOrdinary ? memory_of(ordinary_) : shared_.memory();
        const TimedBody body = [&] { comm_.run_in_place(call, data.slice(0, call.bytes())); };
        keep_least(rows, {.algorithm = &algorithm,
                          .bytes = call.count * sizeof(float),
                          .origin = origin,
                          .segment_bytes = plan.segment_bytes,
                          .seconds = median_seconds(comm_, {&body, 1}, kBudget)[0]});
      }
    }
  }

  static void keep_least(std::vector<Measured>& rows, const Measured& row) {
    const auto same = [&](const Measured& known) {
      return known.algorithm == row.algorithm && known.bytes == row.bytes &&
             known.origin == row.origin;
    };
    const auto known = std::ranges::find_if(rows, same);
    if (known == rows.end()) {
      rows.push_back(row);
    } else {
      known->seconds = std::min(known->seconds, row.seconds);
    }
  }

  void predict(const CostModel& model) {
    for (Measured& m : measured_) {
      m.predicted = model.seconds(*m.algorithm, double(m.bytes), double(m.segment_bytes), m.origin);
    }
  }

  // What goes by messages.
  void simulate_all(const Profile& profile) {
    const LinkClass& inside = find_link(profile, comm_.transport_name(), comm_.world_size(), 1);
    for (Measured& m : measured_) {
      if (shared_.shared() && m.algorithm->medium == Medium::kSharedMemory) continue;
      const CallShape shape{.world_size = comm_.world_size(),
                            .count = m.bytes / sizeof(float),
                            .segment = m.segment_bytes / sizeof(float)};
      m.simulated = simulate(*m.algorithm, shape, DType::kF32, FlatLinks{inside}).seconds;
    }
  }

  [[nodiscard]] std::string head(bool any_order = false) const {
    return fmt::format("{} {} ranks{}", options_.transport, options_.ranks,
                       any_order ? ", any order" : "");
  }

  void report() const {
    std::map<std::string, std::vector<double>> predicted;
    std::map<std::string, std::vector<double>> simulated;
    for (const Measured& m : measured_) {
      const std::string name =
          fmt::format("{} {}{}", to_string(m.algorithm->collective), m.algorithm->name,
                      m.origin == MemoryOrigin::kOrdinary ? "" : " shared");
      if (!options_.quiet) {
        fmt::print("{:<36} {:>9} {:>11.2f} us measured {:>11.2f} predicted {:>11.2f} simulated\n",
                   name, format_bytes(m.bytes), m.seconds * 1e6, m.predicted * 1e6,
                   m.simulated * 1e6);
      }
      for (const std::string& row : {name, std::string("all")}) {
        predicted[row].push_back(std::abs(m.predicted / m.seconds - 1));
        if (m.simulated > 0) simulated[row].push_back(std::abs(m.simulated / m.seconds - 1));
      }
    }
    for (const auto& [name, errors] : predicted) {
      if (options_.quiet && name != "all") continue;
      fmt::print("{}: {:<36} predicted {}; simulated {}\n", head(), name, summary_of(errors),
                 summary_of(simulated[name]));
    }
  }

  static std::string summary_of(const std::vector<double>& errors) {
    if (errors.empty()) return "not at all";
    double sum = 0;
    for (const double error : errors) sum += error;
    return fmt::format("within {:.1f}% (mean of {}; worst {:.0f}%)",
                       100 * sum / double(errors.size()), errors.size(),
                       100 * *std::ranges::max_element(errors));
  }

  static Cases cases_of(const std::vector<Measured>& rows, bool invariant) {
    Cases cases;
    for (const Measured& m : rows) {
      if (m.origin == MemoryOrigin::kOrdinary && (m.algorithm->layout_invariant || !invariant)) {
        cases[{m.algorithm->collective, m.bytes}].push_back(m);
      }
    }
    return cases;
  }

  static Verdict judge(const CaseKey& key, const std::vector<Measured>& rows,
                       const CostModel& model, bool invariant) {
    const AlgorithmPlan plan = select_algorithm(
        {.collective = key.first, .dtype = DType::kF32, .count = key.second / sizeof(float)},
        {.layout_invariant = invariant}, model, MemoryOrigin::kOrdinary);
    return {&*std::ranges::find(rows, plan.algorithm, &Measured::algorithm),
            &*std::ranges::min_element(rows, {}, &Measured::seconds)};
  }

  // All ranks have the same times, so they agree on the misses.
  void measure_misses_again(const CostModel& model, bool invariant) {
    for (const auto& [key, rows] : cases_of(measured_, invariant)) {
      if (judge(key, rows, model, invariant).ratio() <= kGood || again_.contains(key)) continue;
      for (int pass = 0; pass < kMorePasses; ++pass) {
        measure(key.first, key.second, model, again_[key]);
      }
    }
  }

  void report_choices(const CostModel& model, bool invariant) const {
    size_t within = 0;
    size_t within_again = 0;
    double worst = 1;
    const Cases cases = cases_of(measured_, invariant);
    for (const auto& [key, rows] : cases) {
      const Verdict first = judge(key, rows, model, invariant);
      if (first.ratio() <= kGood) {
        ++within;
        worst = std::max(worst, first.ratio());
        continue;
      }
      const Cases more = cases_of(again_.at(key), invariant);
      const Verdict again = judge(key, more.at(key), model, invariant);
      if (again.ratio() <= kGood) ++within_again;
      worst = std::max(worst, again.ratio());
      fmt::print("{}: {} {}: chose {}, best {}: {:.2f} times its time; again: best {}: {:.2f}\n",
                 head(!invariant), to_string(key.first), format_bytes(key.second),
                 first.chosen->algorithm->name, first.best->algorithm->name, first.ratio(),
                 again.best->algorithm->name, again.ratio());
    }
    fmt::print(
        "{}: chosen within 10% of the best at {} of {}, and at {} more that ran again; worst "
        "{:.2f} times its time\n",
        head(!invariant), within, cases.size(), within_again, worst);
  }

  Communicator& comm_;
  const Options& options_;
  CommunicatorMemory shared_;
  std::vector<std::byte> ordinary_;
  std::vector<Measured> measured_;
  Cases again_;  // by case that missed
};

// As gxp's launcher does, for times that can be repeated.
void stay_on_core(int number) {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  number %= CPU_COUNT(&all);
  for (size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &all) || number-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

void run_all_ranks(const Options& options) {
  const auto run = [&](Store& store, const Secret& secret) {
    const auto device = make_cpu_device();
    Communicator comm(make_transport(options.transport, {.rank = store.rank(),
                                                         .world_size = options.ranks,
                                                         .store = &store,
                                                         .secret = &secret,
                                                         .deadline = soon()}),
                      *device, {});
    Bench(comm, options).run();
    store.barrier("end", soon());
  };
  run_ranks(options.ranks, soon(), run, stay_on_core);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--ranks") options.ranks = std::max(2, std::atoi(argv[i + 1]));
    if (name == "--transport") options.transport = value;
    if (name == "--profile") options.profile = value;
    if (name == "--save") options.save = value;
    if (name == "--collective") options.collective = value;
    if (name == "--passes") options.passes = std::max(1, std::atoi(argv[i + 1]));
    if (name == "--quiet") options.quiet = value != "0";
  }
  return options;
}

}  // namespace
}  // namespace gxp

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  gxp::run_all_ranks(gxp::parse(argc, argv));
}
