#include "lib/tools/colltest/runner.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "lib/base/bytes.h"
#include "lib/base/log.h"
#include "lib/base/median.h"
#include "lib/tools/colltest/gather.h"

namespace gxp {
namespace {

size_t largest_size(std::span<const BenchCase> cases) {
  size_t largest = 0;
  for (const BenchCase& bench : cases) largest = std::max(largest, bench.size_bytes());
  return largest;
}

// Elements of unlike types are moved by unlike bytes; the memory has room for the widest.
constexpr size_t kWidest = 8;

// What peers reach directly is the communicator's of the host, and shareable of a GPU.
GuardedMemory make_memory(Communicator& communicator, Device& device, size_t bytes,
                          const BenchOptions& options) {
  const size_t room = GuardedMemory::room_for(bytes + size_t(options.unalign) * kWidest);
  const bool on_host = device.space() == MemorySpace::kHost;
  if (options.memory == MemoryOrigin::kOrdinary)
    return {device, device.allocate(room, MemoryKind::kWorkspace)};
  if (!on_host) return {device, device.allocate_shareable(room, MemoryKind::kWorkspace)};
  return {device, communicator.allocate(room)};
}

// Copies that no cache holds and that take some 100 us.
constexpr size_t kLeastCopied = size_t{64} << 20;
constexpr size_t kMostCopied = size_t{256} << 20;

// The value after "NAME:" in a file of /proc; "" if it is not there.
std::string proc_value(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(name) || colon == std::string::npos) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

template <size_t N>
void copy_text(const std::string& text, std::array<char, N>& into) {
  std::copy_n(text.data(), std::min(text.size(), N - 1), into.begin());
}

RankInfo own_info(const Communicator& communicator, const BenchDevice& place) {
  RankInfo info;
  info.pid = int32_t(::getpid());
  const std::span<const int> hosts = communicator.hosts();
  if (!hosts.empty()) info.host_number = hosts[size_t(communicator.rank())];
  ::gethostname(info.host.data(), info.host.size() - 1);
  const bool on_gpu = place.device.space() != MemorySpace::kHost;
  const std::string processor =
      on_gpu ? place.device.description() : proc_value("/proc/cpuinfo", "model name");
  copy_text(processor.empty() ? "cpu" : processor, info.processor);
  if (on_gpu) {
    info.gpu = place.number;
    copy_text(place.device.bus_id(), info.bus_id);
  }
  return info;
}

// The samples of all ranks: rank r's are [r * iterations, (r + 1) * iterations).
class Samples {
 public:
  Samples(std::vector<Sample> all, size_t iterations)
      : all_(std::move(all)), iterations_(iterations), ranks_(all_.size() / iterations) {}

  // Seconds per iteration, as `average` combines the ranks.
  [[nodiscard]] std::vector<double> combined(Average average) const {
    std::vector<double> times(iterations_);
    for (size_t i = 0; i < iterations_; ++i) times[i] = 1e-9 * combine(average, i);
    return times;
  }
  [[nodiscard]] double median_of_rank(size_t rank) const {
    std::vector<double> times(iterations_);
    for (size_t i = 0; i < iterations_; ++i) times[i] = 1e-9 * double(at(rank, i).took_ns);
    return median_of(times);
  }
  [[nodiscard]] double median_lateness(size_t rank) const {
    std::vector<double> late(iterations_);
    for (size_t i = 0; i < iterations_; ++i) {
      int64_t first = at(rank, i).entered_ns;
      for (size_t r = 0; r < ranks_; ++r) first = std::min(first, at(r, i).entered_ns);
      late[i] = 1e-9 * double(at(rank, i).entered_ns - first);
    }
    return median_of(late);
  }
  [[nodiscard]] size_t ranks() const { return ranks_; }

 private:
  [[nodiscard]] const Sample& at(size_t rank, size_t i) const {
    return all_[rank * iterations_ + i];
  }
  [[nodiscard]] double combine(Average average, size_t i) const {
    double result = double(at(0, i).took_ns);
    for (size_t r = 1; r < ranks_; ++r) {
      const auto took = double(at(r, i).took_ns);
      if (average == Average::kMean) result += took;
      if (average == Average::kMin) result = std::min(result, took);
      if (average == Average::kMax) result = std::max(result, took);
    }
    return average == Average::kMean ? result / double(ranks_) : result;
  }

  std::vector<Sample> all_;
  size_t iterations_;
  size_t ranks_;
};

PlacementResult evaluate(const Samples& samples, bool one_clock, bool keep_times) {
  PlacementResult half;
  half.times_s = samples.combined(Average::kMax);
  half.slowest = summarize(half.times_s);
  half.iterations = half.times_s.size();
  for (const Average average : {Average::kRank0, Average::kMean, Average::kMin, Average::kMax})
    half.median_s_by_average[size_t(average)] = median_of(samples.combined(average));
  for (size_t rank = 0; rank < samples.ranks(); ++rank) {
    RankTiming timing{samples.median_of_rank(rank), {}};
    if (one_clock) timing.late_s = samples.median_lateness(rank);
    half.ranks.push_back(timing);
  }
  if (!keep_times) half.times_s.clear();
  return half;
}

void log_wrong(const BenchCase& bench, bool in_place, size_t rank, const WrongElements& wrong) {
  log_error(
      "{} of {} {}{}: rank {}: {} wrong elements, the first at {} of its output: want {}, got {}",
      bench.operation->name, format_bytes(bench.size_bytes()), to_string(bench.dtype),
      in_place ? ", in place" : "", rank, wrong.count, wrong.first,
      element_text(bench.dtype, wrong.want.data()), element_text(bench.dtype, wrong.got.data()));
}

}  // namespace

size_t memory_needed(std::span<const BenchCase> cases, const BenchOptions& options) {
  return 2 * (largest_size(cases) + size_t(options.unalign) * kWidest);
}

void check_memory(size_t bytes_per_rank, int ranks_here, size_t available) {
  if (bytes_per_rank <= available / size_t(ranks_here)) return;
  fail(ErrorKind::kIo,
       "allocate 2 buffers on each of {} ranks of this host: {} in all, but {} are available; "
       "lower --maxbytes or start fewer ranks here",
       ranks_here, format_bytes(bytes_per_rank * size_t(ranks_here)), format_bytes(available));
}

size_t available_memory() {
  const std::string kib = proc_value("/proc/meminfo", "MemAvailable");
  return kib.empty() ? std::numeric_limits<size_t>::max() : std::stoull(kib) << 10;
}

std::vector<RankInfo> gather_rank_info(Communicator& communicator, const BenchDevice& place) {
  const RankInfo mine = own_info(communicator, place);
  return gather_values(communicator, std::span(&mine, 1));
}

CaseRunner::CaseRunner(Communicator& communicator, const BenchDevice& place,
                       std::span<const BenchCase> cases, const BenchOptions& options)
    : communicator_(communicator),
      place_(place),
      options_(options),
      one_clock_(std::ranges::all_of(communicator.hosts(), [](int host) { return host == 0; })),
      most_bytes_(largest_size(cases)),
      calls_(communicator, place),
      view_(place.device, most_bytes_),
      first_(make_memory(communicator, place.device, most_bytes_, options)),
      second_(make_memory(communicator, place.device, most_bytes_, options)) {
  const bool maps = options.memory == MemoryOrigin::kCommunicator && communicator.world_size() > 1;
  if (maps && medium().collectives == CallsOn::kDevice) {
    kept_.push_back(communicator.keep(first_.allocation()));
    kept_.push_back(communicator.keep(second_.allocation()));
  }
  const auto encoded = std::ranges::find_if(cases, [](auto& bench) { return bench.codec; });
  if (encoded == cases.end()) return;
  GXP_ASSERT(medium().collectives == CallsOn::kHost);
  if (one_clock_)
    fail(ErrorKind::kConfig,
         "--codec {}: all ranks are on one host, within which nothing is encoded; leave it out, or "
         "start ranks on several hosts",
         encoded->codec->name);
  host_groups_ = split_by_host(communicator);
}

PlacementResult CaseRunner::run_placement(const BenchCase& bench, bool in_place) {
  Trial trial(communicator_, bench, in_place, options_, {calls_, view_, first_, second_});
  std::optional<CompressedAllReduce> compressed;
  if (bench.codec != nullptr) {
    trial.use(compressed.emplace(*bench.codec, CompressionOptions{.error_feedback = false},
                                 bench.count, bench.dtype, *host_groups_, place_.device));
  }
  for (int i = 0; i < options_.checks; ++i) trial.check();
  const std::vector<Sample> mine = trial.time();
  if (options_.checks > 0) trial.check_after_timing();
  const TrialFindings findings = trial.findings();
  std::vector<Sample> samples = gather_values(communicator_, std::span(mine));
  const auto found = gather_values(communicator_, std::span(&findings, 1));
  if (communicator_.rank() != 0) return {};
  PlacementResult half =
      evaluate(Samples(std::move(samples), mine.size()), one_clock_, options_.per_iteration);
  uint64_t wrong = 0;
  for (size_t rank = 0; rank < found.size(); ++rank) {
    wrong += found[rank].wrong.count;
    half.out_of_bounds += found[rank].damaged;
    if (found[rank].wrong.count > 0) log_wrong(bench, in_place, rank, found[rank].wrong);
  }
  if (options_.checks > 0) half.wrong = wrong;
  return half;
}

std::vector<CopyRate> CaseRunner::measure_copies() {
  return gxp::measure_copies(communicator_, place_, medium(),
                             std::clamp(most_bytes_, kLeastCopied, kMostCopied));
}

void CaseRunner::describe_choice(CaseResult& result) const {
  const BenchCase& bench = result.bench;
  if (bench.codec != nullptr) {
    result.algorithm = bench.codec->name;
    result.reason = "encoded between hosts";
  } else if (bench.operation->collective) {
    const AlgorithmPlan plan =
        communicator_.plan(call_of(bench, communicator_.rank()), options_.memory);
    result.algorithm = communicator_.engine_name();  // of an engine that tells no more
    const bool moves = moves_data(*bench.operation);
    if (plan.algorithm != nullptr && moves && medium().collectives == CallsOn::kDevice) {
      result.algorithm = "device";
      result.reason = "between the GPUs' memories";
      return;
    }
    if (plan.algorithm != nullptr) {
      result.algorithm = plan.algorithm->name;
      // The model knows nothing of the copies to pinned memory.
      if (medium().collectives == CallsOn::kHost || !moves)
        result.predicted_s = plan.predicted_seconds;
    }
    result.channels = plan.channels;
    result.segment_bytes = plan.segment_bytes;
    result.reason = plan.reason;
  }
}

CaseResult CaseRunner::run(const BenchCase& bench) {
  CaseResult result;
  result.bench = bench;
  describe_choice(result);
  if (result.algorithm.empty()) result.algorithm = "none";
  result.out_of_place = run_placement(bench, false);
  if (has_in_place(*bench.operation)) result.in_place = run_placement(bench, true);
  return result;
}

}  // namespace gxp
