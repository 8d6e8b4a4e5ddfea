#include "lib/tools/colltest/copy_rates.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>

#include "lib/base/deadline.h"
#include "lib/base/median.h"
#include "lib/collective/communicator.h"

namespace gxp {
namespace {

constexpr int kTimedCopies = 5;
constexpr int kCopiesEach = 4;  // so that the host's wait at the end is a small part
constexpr std::chrono::seconds kCopyTimeout{60};

// The median of a few, after one that is not counted; `barrier` comes before each, untimed.
double seconds_of_copies(const std::function<void()>& barrier, const std::function<void()>& copy) {
  std::vector<double> times;
  for (int i = 0; i <= kTimedCopies; ++i) {
    barrier();
    const auto begin = std::chrono::steady_clock::now();
    copy();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    times.push_back(taken.count());
  }
  return median_of(std::span(times).subspan(1));
}

double own_rate(Device& device, Memory to, ConstMemory from) {
  const std::unique_ptr<Stream> stream = device.make_stream("copy-rate");
  const auto copy = [&] {
    for (int i = 0; i < kCopiesEach; ++i) stream->copy(to, from);
    stream->finish(Deadline::after(kCopyTimeout));
  };
  const double seconds = seconds_of_copies([] {}, copy);
  return 2.0 * kCopiesEach * double(to.bytes) / seconds;
}

// Rank 1 of the pair reads rank 0's memory.
double rate_of_pair(Communicator& pair, Memory memory) {
  const double seconds =
      seconds_of_copies([&] { pair.barrier(); }, [&] { pair.broadcast(memory, 0); });
  return pair.rank() == 1 ? double(memory.bytes) / seconds : 0;
}

}  // namespace

std::vector<CopyRate> measure_copies(Communicator& communicator, const BenchDevice& place,
                                     const BenchMedium& medium, size_t bytes) {
  if (place.folds == nullptr) return {};
  const int rank = communicator.rank();
  const int ranks = communicator.world_size();
  const Buffer first = place.device.allocate_shareable(bytes, MemoryKind::kWorkspace);
  const Buffer second = place.device.allocate_shareable(bytes, MemoryKind::kWorkspace);
  // Whoever measured one adds it to zeros: of its own memory, then of the rank's before it.
  std::vector<double> rates(2 * size_t(ranks));
  for (int turn = 0; turn < ranks; ++turn) {
    communicator.barrier();
    if (turn == rank) rates[size_t(rank)] = own_rate(place.device, second.memory(), first.memory());
  }
  const bool mapped =
      medium.collectives == CallsOn::kDevice && communicator.engine_name() == "native" && ranks > 1;
  // Ranks (0, 1), (2, 3), ..., then (1, 2), (3, 4), ...
  for (int parity = 0; mapped && parity < std::min(2, ranks - 1); ++parity) {
    const auto pair = communicator.split((rank + parity) / 2, rank);
    for (int receiver = parity + 1; receiver < ranks; receiver += 2) {
      communicator.barrier();
      if (rank != receiver && rank != receiver - 1) continue;
      rates[size_t(ranks + receiver)] = rate_of_pair(*pair, first.memory());
    }
    communicator.barrier();
  }
  communicator.all_reduce(memory_of(rates), DType::kF64, ReduceOp::kMax);
  std::vector<CopyRate> copies;
  for (int of = 0; of < ranks; ++of) copies.push_back({of, of, rates[size_t(of)]});
  for (int of = 1; mapped && of < ranks; ++of)
    copies.push_back({of, of - 1, rates[size_t(ranks + of)]});
  return copies;
}

double rate_of_gpus(std::span<const CopyRate> copies, std::span<const RankInfo> ranks) {
  if (ranks.empty()) return 0;
  double sum = 0;
  for (const CopyRate& copy : copies) {
    if (copy.from != copy.rank) continue;
    const RankInfo& own = ranks[size_t(copy.rank)];
    const auto same_gpu = [&](const RankInfo& other) {
      return other.host_number == own.host_number &&
             std::strcmp(other.bus_id.data(), own.bus_id.data()) == 0;
    };
    const auto before = ranks.first(size_t(copy.rank));
    if (std::ranges::none_of(before, same_gpu)) sum += copy.bytes_per_s;
  }
  return sum;
}

}  // namespace gxp
