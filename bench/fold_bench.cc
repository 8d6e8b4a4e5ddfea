// Speed of fold_all beside the plain way: a 32 KiB tile reduced into a temporary by a compiled
// loop, then copied to every target (this file is compiled with -O3 -march=native).
//   gxp_fold_bench [THREADS [BYTES...]]       steadier under `chrt -f 10`
// Buffers are shared memory, as in an all-reduce among processes. `n>t`: n sources, of which the
// first t are targets. With several threads each reduces its share of the elements. Medians of
// calls that take turns.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/reduce_op.h"

namespace {

using namespace gxp;
using Clock = std::chrono::steady_clock;

class SharedBuffer {
 public:
  explicit SharedBuffer(size_t bytes) : bytes_(bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) fail(ErrorKind::kIo, "map {} bytes", bytes);
    data_ = static_cast<std::byte*>(at);
    std::memset(data_, 0, bytes);
  }
  SharedBuffer(SharedBuffer&& other) noexcept : data_(other.data_), bytes_(other.bytes_) {
    other.data_ = nullptr;
  }
  ~SharedBuffer() {
    if (data_) munmap(data_, bytes_);
  }
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  size_t bytes_;
};

// Spins: a thread that sleeps would be what is measured.
class Meeting {
 public:
  explicit Meeting(int threads) : threads_(threads) {}
  void wait() {
    const int round = arrived_.fetch_add(1) / threads_;
    while (arrived_.load() < (round + 1) * threads_) {
    }
  }

 private:
  int threads_;
  std::atomic<int> arrived_ = 0;
};

using Pointers = std::vector<std::byte*>;
using Sources = std::vector<const std::byte*>;

void plain_fold_all(const Pointers& targets, const Sources& sources, size_t bytes) {
  constexpr size_t kTile = 8192;
  static thread_local float sums[kTile];
  const size_t n = sources.size();
  for (size_t at = 0; at < bytes / sizeof(float); at += kTile) {
    const size_t count = std::min(kTile, bytes / sizeof(float) - at);
    if (n == 2) {
      const float* a = reinterpret_cast<const float*>(sources[0]) + at;
      const float* b = reinterpret_cast<const float*>(sources[1]) + at;
      for (size_t i = 0; i < count; ++i) sums[i] = a[i] + b[i];
    } else {
      for (size_t i = 0; i < count; ++i) {
        float sum = reinterpret_cast<const float*>(sources[0])[at + i];
        for (size_t r = 1; r < n; ++r) sum += reinterpret_cast<const float*>(sources[r])[at + i];
        sums[i] = sum;
      }
    }
    for (std::byte* target : targets)
      std::memcpy(target + at * sizeof(float), sums, count * sizeof(float));
  }
}

using Reduce = std::function<void(const Pointers&, const Sources&, size_t bytes)>;

// Median seconds of each of `ways`, which take turns call by call.
std::vector<double> medians(const std::vector<Reduce>& ways, const Pointers& buffers,
                            size_t target_count, size_t bytes, int threads) {
  const size_t calls = std::clamp<size_t>((size_t{256} << 20) / bytes / buffers.size(), 15, 2000);
  std::vector<std::vector<double>> seconds(ways.size());
  Meeting meeting(threads);
  const auto work = [&](int thread) {
    const size_t share = bytes / threads / 64 * 64;
    Pointers part = buffers;
    for (std::byte*& buffer : part) buffer += thread * share;
    const Sources sources(part.begin(), part.end());
    part.resize(target_count);
    for (size_t call = 0; call < calls; ++call) {
      for (size_t way = 0; way < ways.size(); ++way) {
        meeting.wait();
        const auto start = Clock::now();
        ways[way](part, sources, share);
        meeting.wait();
        if (thread == 0)
          seconds[way].push_back(std::chrono::duration<double>(Clock::now() - start).count());
      }
    }
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
  others.clear();
  std::vector<double> result;
  for (auto& times : seconds) {
    std::ranges::sort(times);
    result.push_back(times[times.size() / 2]);
  }
  return result;
}

Reduce own(DType dtype, ReduceOp op) {
  return [=](const Pointers& targets, const Sources& sources, size_t bytes) {
    fold_all(targets, sources, bytes, dtype, op);
  };
}

void measure(size_t n, size_t target_count, size_t bytes, int threads) {
  std::vector<SharedBuffer> memory;
  Pointers buffers;
  for (size_t i = 0; i < n; ++i) buffers.push_back(memory.emplace_back(bytes).data());
  const auto seconds =
      medians({plain_fold_all, own(DType::kF32, ReduceOp::kSum), own(DType::kBF16, ReduceOp::kSum),
               own(DType::kF16, ReduceOp::kSum), own(DType::kF32, ReduceOp::kMax)},
              buffers, target_count, bytes, threads);
  fmt::print("{}>{} {:10}", n, target_count, bytes);
  for (const double s : seconds) fmt::print(" {:8.2f}", double(bytes) / s * 1e-9);
  fmt::print(" {:6.2f}\n", seconds[0] / seconds[1]);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::stoi(argv[1]) : 1;
  std::vector<size_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::stoul(argv[i]));
  if (sizes.empty()) sizes = {8 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};
  fmt::print("GB/s of one buffer, {} threads\n", threads);
  fmt::print("{:>3} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6}\n", "n", "bytes", "plain", "f32",
             "bf16", "f16", "f32 max", "ratio");
  constexpr size_t kCounts[][2] = {{2, 1}, {2, 2}, {4, 4}, {8, 8}};
  for (const auto [n, target_count] : kCounts) {
    for (const size_t bytes : sizes) measure(n, target_count, bytes, threads);
  }
}
