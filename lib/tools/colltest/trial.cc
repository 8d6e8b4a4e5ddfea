#include "lib/tools/colltest/trial.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "lib/collective/compress/compressed_all_reduce.h"
#include "lib/tools/colltest/gather.h"

namespace gxp {
namespace {

constexpr double kSecondsPerHalf = 0.5;  // so that a row takes about a second
constexpr int kFewestIterations = 15;
constexpr int kMostIterations = 20000;
constexpr size_t kMostSamples = 1 << 22;  // of all ranks, on rank 0: 64 MiB
constexpr int kUnwritten = 0xa5;          // what an output holds before a checked call

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Memory part(Memory whole, Range range, size_t element) {
  return whole.slice(range.begin * element, range.count * element);
}

}  // namespace

Trial::Trial(Communicator& communicator, const BenchCase& bench, bool in_place,
             const BenchOptions& options, const TrialMemory& memory)
    : communicator_(communicator),
      bench_(bench),
      options_(options),
      in_place_(in_place),
      memory_(memory),
      data_(bench, communicator.rank(), communicator.world_size()),
      call_(call_of(bench, communicator.rank())) {
  const size_t element = size_of(bench.dtype);
  const Extents extents =
      extents_of(*bench.operation, call_, communicator.rank(), communicator.world_size());
  const size_t offset = size_t(options.unalign) * element;
  if (in_place) {
    whole_ = memory.second.place(offset, bench.size_bytes());
    input_ = part(whole_, extents.input, element);
    output_ = part(whole_, extents.output, element);
  } else {
    input_ = memory.first.place(offset, extents.input.count * element);
    output_ = memory.second.place(offset, extents.output.count * element);
  }
}

void Trial::call_once() {
  if (compressed_ != nullptr) {
    if (!in_place_ && input_.bytes > 0) std::memcpy(output_.data, input_.data, input_.bytes);
    return compressed_->all_reduce(output_, bench_.redop);
  }
  if (bench_.operation->collective) return memory_.calls.run(call_, input_, output_);
  memory_.calls.pass_on(input_, output_);
}

void Trial::check() {
  fill(in_place_ ? whole_ : output_, kUnwritten);
  fill_input();
  call_once();
  compare();
}

void Trial::fill(Memory memory, int byte) {
  memory_.view.write(memory, [&](Memory host) { std::memset(host.data, byte, host.bytes); });
}

void Trial::fill_input() {
  memory_.view.write(input_, [this](Memory host) { data_.fill_input(host); });
}

void Trial::compare() {
  const WrongElements found = data_.compare(memory_.view.read(output_));
  const uint64_t before = wrong_.count;
  if (before == 0) wrong_ = found;
  wrong_.count = before + found.count;
}

void Trial::check_after_timing() {
  if (in_place_) return check();
  compare();
}

TrialFindings Trial::findings() const {
  return {wrong_, memory_.first.damaged() + memory_.second.damaged()};
}

void Trial::prepare_timing() {
  if (!in_place_) return fill_input();
  fill(whole_, 0);
}

void Trial::measure(std::vector<Sample>& samples) {
  const bool barrier_before = options_.pacing == Pacing::kBarrierBefore;
  const bool barrier_timed = options_.pacing == Pacing::kBarrierTimed;
  for (Sample& sample : samples) {
    if (barrier_before) communicator_.barrier();
    sample.entered_ns = now_ns();
    for (int i = 0; i < options_.calls; ++i) call_once();
    if (barrier_timed) communicator_.barrier();
    sample.took_ns = now_ns() - sample.entered_ns;
  }
}

std::vector<Sample> Trial::time() {
  prepare_timing();
  const int standard = bench_.size_bytes() <= (64 << 10) ? 50 : 5;
  const int asked = options_.warmup < 0 ? standard : options_.warmup;
  const bool estimates = options_.iterations == 0;
  std::vector<Sample> samples(size_t(estimates ? std::max(1, asked) : asked));
  const int64_t start = now_ns();
  measure(samples);
  const double seconds = double(now_ns() - start) * 1e-9;
  const int iterations =
      estimates ? choose_iterations(seconds / double(samples.size())) : options_.iterations;
  samples.assign(size_t(iterations), {});
  measure(samples);
  for (Sample& sample : samples) sample.took_ns /= options_.calls;
  return samples;
}

int Trial::choose_iterations(double seconds_each) {
  const size_t held = kMostSamples / size_t(communicator_.world_size());
  const double most = double(std::clamp<size_t>(held, kFewestIterations, kMostIterations));
  const double fitting = kSecondsPerHalf / std::max(seconds_each, 1e-9);
  return value_of_rank_0(communicator_, int(std::clamp<double>(fitting, kFewestIterations, most)));
}

}  // namespace gxp
