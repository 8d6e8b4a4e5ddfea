// How well the cost model of collective/cost_model.h tells what collectives take here.
//   gxp_collectives_model_bench [--transport shm|tcp] [--ranks N] [--profile FILE] [--save FILE]
//                               [--collective NAME] [--quiet 1]
// Ranks are processes on this host. They calibrate (or load FILE), then run every algorithm of
// every collective from 8 B to 64 MiB, float sums in place; with shared memory, `direct` also in
// memory from allocate(). Times are medians of the slowest rank. A row says what the algorithm
// took, what the model says, and their ratio. At the end: mean absolute relative error per
// collective and algorithm, and how far the model's choice was from the fastest algorithm.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/collective/calibrate.h"
#include "lib/net/socket.h"
#include "lib/net/store.h"
#include "lib/net/store_server.h"
#include "lib/transport/table.h"

namespace gxp {
namespace {

struct Options {
  std::string transport = "shm";
  int ranks = 2;
  std::string profile;     // empty: calibrate
  std::string save;        // empty: do not
  std::string collective;  // empty: all
  bool quiet = false;      // no rows, only the summary
};

constexpr size_t kMost = size_t{64} << 20;

Deadline soon() { return Deadline::after(std::chrono::seconds(600)); }

struct Measured {
  const Algorithm* algorithm = nullptr;
  size_t bytes = 0;
  bool staged = true;
  double seconds = 0;
  double predicted = 0;
};

class Bench {
 public:
  Bench(Communicator& comm, const Options& options) : comm_(comm), options_(options) {}

  void run() {
    const Profile profile = get_profile();
    const CommunicatorMemory shared = comm_.allocate(kMost);
    const CostModel model({.world_size = comm_.world_size(),
                           .hosts = comm_.hosts(),
                           .transport = comm_.transport_name(),
                           .shared_space = shared.shared()},
                          profile);
    std::vector<std::byte> ordinary(kMost);
    for (const Algorithm& algorithm : algorithms()) {
      if (!options_.collective.empty() && options_.collective != to_string(algorithm.collective)) {
        continue;
      }
      for (size_t bytes = 8; bytes <= kMost; bytes *= bytes < (8 << 20) ? 4 : 2) {
        measure(algorithm, memory_of(ordinary).slice(0, bytes), model, true);
        if (shared.shared() && algorithm.name == "direct") {
          measure(algorithm, shared.memory().slice(0, bytes), model, false);
        }
        if (algorithm.collective == Collective::kBarrier) break;
      }
    }
    if (comm_.rank() == 0) report(model);
  }

 private:
  Profile get_profile() {
    if (!options_.profile.empty()) return load_profile(options_.profile);
    const auto start = Deadline::Clock::now();
    const Profile profile = calibrate(comm_);
    if (comm_.rank() != 0) return profile;
    fmt::print("calibrated in {:.2f} s\n",
               std::chrono::duration<double>(Deadline::Clock::now() - start).count());
    if (!options_.save.empty()) save_profile(profile, options_.save);
    return profile;
  }

  void measure(const Algorithm& algorithm, Memory data, const CostModel& model, bool staged) {
    const auto ranks = static_cast<size_t>(comm_.world_size());
    const size_t count = std::max(data.bytes / sizeof(float) / ranks, size_t{1}) * ranks;
    const ChoiceSettings settings{.algorithm = std::string(algorithm.name)};
    const Call call{.collective = algorithm.collective,
                    .dtype = DType::kF32,
                    .count = algorithm.collective == Collective::kBarrier ? 0 : count};
    const Extents extents = extents_of(call, comm_.rank(), comm_.world_size());
    data.bytes = call.count * sizeof(float);
    const auto part = [&](Range range) {
      return data.slice(range.begin * sizeof(float), range.count * sizeof(float));
    };
    comm_.use(settings);
    const double seconds =
        median_seconds(comm_, [&] { comm_.run(call, part(extents.input), part(extents.output)); });
    const Plan plan = choose(call.collective, call.dtype, data.bytes, settings, model, staged);
    measured_.push_back({&algorithm, data.bytes, staged, seconds, plan.predicted_seconds});
  }

  void report(const CostModel& model) const {
    std::map<std::string, std::vector<double>> errors;
    for (const Measured& m : measured_) {
      const double ratio = m.predicted / m.seconds;
      const std::string name = fmt::format("{} {}{}", to_string(m.algorithm->collective),
                                           m.algorithm->name, m.staged ? "" : " shared");
      if (!options_.quiet) {
        fmt::print("{:<36} {:>9} {:>11.2f} us measured {:>11.2f} us predicted {:>6.2f}\n", name,
                   format_bytes(m.bytes), m.seconds * 1e6, m.predicted * 1e6, ratio);
      }
      errors[name].push_back(std::abs(ratio - 1));
      errors["all"].push_back(std::abs(ratio - 1));
    }
    for (const auto& [name, values] : errors) {
      double sum = 0;
      for (const double value : values) sum += value;
      fmt::print("{} {} ranks: {:<36} mean error {:>5.1f}%, worst {:>5.1f}%\n", options_.transport,
                 options_.ranks, name, 100 * sum / double(values.size()),
                 100 * *std::ranges::max_element(values));
    }
    for (const bool invariant : {true, false}) report_choices(model, invariant);
  }

  // The choice is made without knowing the memory: `staged`.
  void report_choices(const CostModel& model, bool invariant) const {
    std::map<std::pair<Collective, size_t>, std::vector<const Measured*>> cases;
    for (const Measured& m : measured_) {
      if (m.staged && (m.algorithm->layout_invariant || !invariant)) {
        cases[{m.algorithm->collective, m.bytes}].push_back(&m);
      }
    }
    int within = 0;
    for (const auto& [key, rows] : cases) {
      const Plan plan =
          choose(key.first, DType::kF32, key.second, {.layout_invariant = invariant}, model, true);
      const Measured* best = *std::ranges::min_element(rows, {}, &Measured::seconds);
      const auto chosen = std::ranges::find(rows, plan.algorithm, &Measured::algorithm);
      if (chosen == rows.end()) continue;
      const double ratio = (*chosen)->seconds / best->seconds;
      if (ratio <= 1.1) ++within;
      if (ratio > 1.1 || !options_.quiet) {
        fmt::print("{} {} ranks{}: {} {}: chose {}, best {}: {:.2f} times its time\n",
                   options_.transport, options_.ranks, invariant ? "" : ", any order",
                   to_string(key.first), format_bytes(key.second), plan.algorithm->name,
                   best->algorithm->name, ratio);
      }
    }
    fmt::print("{} {} ranks{}: choice within 10% of the best at {} of {}\n", options_.transport,
               options_.ranks, invariant ? "" : ", any order", within, cases.size());
  }

  Communicator& comm_;
  const Options& options_;
  std::vector<Measured> measured_;
};

void run_rank(const Options& options, const Endpoint& server, const Secret& secret, int rank) {
  Store store(server, rank, options.ranks, secret, soon());
  {
    const auto device = make_cpu_device();
    Communicator comm(make_transport(options.transport, {.rank = rank,
                                                         .world_size = options.ranks,
                                                         .store = &store,
                                                         .secret = &secret,
                                                         .deadline = soon()}),
                      *device, {});
    Bench(comm, options).run();
    store.barrier("end", soon());
  }
  store.close();
}

void run_all_ranks(const Options& options) {
  const Secret secret = Secret::generate();
  Fd listener = listen_tcp({"127.0.0.1", 0});
  const Endpoint server = local_endpoint(listener.get());
  for (int rank = 1; rank < options.ranks; ++rank) {
    if (fork() != 0) continue;
    listener.reset();
    run_rank(options, server, secret, rank);
    _exit(0);
  }
  const StoreServer store_server(std::move(listener), options.ranks, secret);
  run_rank(options, server, secret, 0);
  while (wait(nullptr) > 0) {
  }
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
