#include "tests/cuda/emulation/cuda_runtime.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace gxp::emulation {
namespace {

namespace context = boost::context;

constexpr size_t kStackBytes = 128 * 1024;

std::atomic<ThreadOrder> order = ThreadOrder::kUp;

// What the lanes of a warp give each other. All of it is by lane, since lanes of different masks
// meet side by side; who comes last makes what all that met have got.
struct Warp {
  unsigned waiting = 0;  // lanes that have come and whose meeting is not complete
  std::array<unsigned, 32> masks{};
  std::array<Given, 32> given{};
  std::array<Given, 32> shown{};      // by lanes of complete meetings
  std::array<unsigned, 32> wanted{};  // whose first word a lane wants
  std::array<uint64_t, 32> got{};
  std::array<unsigned, 32> votes{};  // lanes whose first word is not 0
};

// Runs a block's threads in turn on the calling host thread.
class Block {
 public:
  void run(const Grid& grid, const uint3& block, const std::function<void()>& thread) {
    const size_t count = size_t{grid.threads.x} * grid.threads.y * grid.threads.z;
    thread_ = &thread;
    shared_.resize(grid.shared_bytes);
    warps_.assign((count + 31) / 32, {});
    while (fibers_.size() < count) fibers_.push_back(std::make_unique<Fiber>(*this));
    at_barrier_ = 0;
    live_ = count;
    blockIdx = block;
    blockDim = grid.threads;
    gridDim = grid.blocks;
    for (size_t i = 0; i < count; ++i) fibers_[i]->start();
    while (live_ > 0) {
      const uint64_t before = progress_;
      for (size_t w = 0; w < warps_.size(); ++w) run_warp(grid, in_order(w, warps_.size()), count);
      if (progress_ == before) give_up("threads wait for each other for ever");
    }
  }

  void barrier() {
    const uint64_t mine = barriers_passed_;
    ++at_barrier_;
    ++progress_;
    release_barrier();
    while (barriers_passed_ == mine) pause();
  }

  uint64_t exchange(unsigned mask, uint64_t value, unsigned from) {
    return meet(mask, {value}, from).got[current_ % 32];
  }

  unsigned votes(unsigned mask, bool vote) {
    return meet(mask, {vote}, current_ % 32).votes[current_ % 32];
  }

  const std::array<Given, 32>& show(const Given& given) {
    return meet(0xffffffffu, given, current_ % 32).shown;
  }

  std::byte* shared() { return shared_.data(); }

 private:
  // A thread of the block: a stack that is used again for every block.
  class Fiber {
   public:
    explicit Fiber(Block& block)
        : fiber_(std::allocator_arg, context::fixedsize_stack(kStackBytes),
                 [this, &block](context::fiber&& back) {
                   back_ = std::move(back);
                   for (;;) {
                     (*block.thread_)();
                     done_ = true;
                     pause();
                   }
                   return context::fiber();
                 }) {}
    void start() { done_ = false; }
    [[nodiscard]] bool done() const { return done_; }
    void resume() { fiber_ = std::move(fiber_).resume(); }
    void pause() { back_ = std::move(back_).resume(); }

   private:
    bool done_ = true;
    context::fiber back_;
    context::fiber fiber_;
  };

  static size_t in_order(size_t i, size_t count) {
    return order == ThreadOrder::kDown ? count - 1 - i : i;
  }

  // As far as it comes without the others, so that a warp is ahead of them wherever it can be.
  void run_warp(const Grid& grid, size_t warp, size_t thread_count) {
    const size_t first = warp * 32;
    const size_t lanes = std::min(thread_count - first, size_t{32});
    uint64_t before = 0;
    do {
      before = progress_;
      for (size_t i = 0; i < lanes; ++i) resume(grid, first + in_order(i, lanes));
    } while (progress_ != before);
  }

  void resume(const Grid& grid, size_t i) {
    if (fibers_[i]->done()) return;
    current_ = i;
    const auto x = grid.threads.x;
    threadIdx = {unsigned(i % x), unsigned(i / x % grid.threads.y),
                 unsigned(i / x / grid.threads.y)};
    fibers_[i]->resume();
    if (!fibers_[i]->done()) return;
    --live_;
    ++progress_;
    release_barrier();
  }

  // Comes back when all lanes of `mask` have come.
  const Warp& meet(unsigned mask, const Given& given, unsigned from) {
    Warp& warp = warps_[current_ / 32];
    const unsigned lane = current_ % 32;
    warp.masks[lane] = mask;
    warp.given[lane] = given;
    warp.wanted[lane] = from;
    warp.waiting |= 1u << lane;
    ++progress_;
    if ((mask >> lane & 1u) == 0) give_up("a lane is not in its own mask");
    if ((warp.waiting & mask) == mask) complete(warp, mask);
    while ((warp.waiting >> lane & 1u) != 0) pause();
    return warp;
  }

  static void complete(Warp& warp, unsigned mask) {
    unsigned votes = 0;
    for (unsigned i = 0; i < 32; ++i)
      if ((mask >> i & 1u) != 0 && warp.given[i][0] != 0) votes |= 1u << i;
    for (unsigned i = 0; i < 32; ++i) {
      if ((mask >> i & 1u) == 0) continue;
      if (warp.masks[i] != mask) give_up("lanes of a warp meet with different masks");
      if ((mask >> warp.wanted[i] & 1u) == 0) give_up("a shuffle reads a lane that takes no part");
      warp.got[i] = warp.given[warp.wanted[i]][0];
      warp.shown[i] = warp.given[i];
      warp.votes[i] = votes;
    }
    warp.waiting &= ~mask;
  }

  void release_barrier() {
    if (at_barrier_ == 0 || at_barrier_ < live_) return;
    at_barrier_ = 0;
    ++barriers_passed_;
  }

  // Others go on; comes back when it is this thread's turn again.
  void pause() { fibers_[current_]->pause(); }

  const std::function<void()>* thread_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Warp> warps_;
  std::vector<std::byte> shared_;
  size_t current_ = 0;
  size_t live_ = 0;
  size_t at_barrier_ = 0;
  uint64_t barriers_passed_ = 0;
  uint64_t progress_ = 0;
};

thread_local Block* running = nullptr;

std::mutex allowed_mutex;
std::map<const void*, size_t> allowed;  // by kernel; allowed_mutex

}  // namespace

void give_up(const char* what) {
  std::fprintf(stderr, "emulated GPU: %s (block %u, %u, %u, thread %u, %u, %u)\n", what, blockIdx.x,
               blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
  std::abort();
}

size_t allowed_shared_bytes(const void* kernel) {
  const std::lock_guard lock(allowed_mutex);
  const auto found = allowed.find(kernel);
  return found == allowed.end() ? 48 * 1024 : found->second;
}

void allow_shared_bytes(const void* kernel, size_t bytes) {
  const std::lock_guard lock(allowed_mutex);
  allowed[kernel] = bytes;
}

void set_thread_order(ThreadOrder now) { order = now; }

void run_grid(const Grid& grid, const std::function<void()>& thread) {
  static thread_local Block block;
  running = &block;
  for (unsigned z = 0; z < grid.blocks.z; ++z) {
    for (unsigned y = 0; y < grid.blocks.y; ++y) {
      for (unsigned x = 0; x < grid.blocks.x; ++x) block.run(grid, {x, y, z}, thread);
    }
  }
}

std::byte* dynamic_shared_memory() { return running->shared(); }
void block_barrier() { running->barrier(); }
void warp_barrier(unsigned mask) { running->exchange(mask, 0, lane()); }
uint64_t exchange(unsigned mask, uint64_t value, unsigned from) {
  return running->exchange(mask, value, from);
}
const std::array<Given, 32>& show(const Given& given) { return running->show(given); }
unsigned ballot(unsigned mask, bool vote) { return running->votes(mask, vote); }

}  // namespace gxp::emulation
