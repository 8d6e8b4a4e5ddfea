// Barriers between devices (kernels/math/device_barrier.h), by threads and std::atomic:
// ThreadSanitizer sees what the words do not order. tests/cuda/barrier_model_test.cc has all
// interleavings of small cases.
#include "kernels/math/device_barrier.h"

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/catch.h"

namespace gxp {
namespace {

using Word = std::atomic<uint32_t>;

struct AtomicFlags {
  const std::atomic<bool>& aborted;
  static void release(Word* word, uint32_t value) { word->store(value, std::memory_order_release); }
  static uint32_t acquire(const Word* word) { return word->load(std::memory_order_acquire); }
  [[nodiscard]] BarrierEnd pause() const {
    std::this_thread::yield();
    return aborted ? BarrierEnd::kAborted : BarrierEnd::kPassed;
  }
};

class Boards {
 public:
  Boards(size_t ranks, uint32_t before)
      : ranks_(ranks), words_(std::make_unique<Word[]>(ranks * ranks)) {
    for (size_t i = 0; i < ranks * ranks; ++i) words_[i] = before;
  }
  BarrierEnd barrier(size_t rank, uint32_t barrier) {
    AtomicFlags flags{aborted};
    for (size_t peer = 0; peer < ranks_; ++peer)
      if (peer != rank) arrive(flags, word(peer, rank), barrier);
    for (size_t peer = 0; peer < ranks_; ++peer) {
      if (peer == rank) continue;
      const BarrierEnd passed = await(flags, word(rank, peer), barrier);
      if (passed != BarrierEnd::kPassed) return passed;
    }
    return BarrierEnd::kPassed;
  }
  std::atomic<bool> aborted = false;

 private:
  Word* word(size_t board, size_t member) { return &words_[board * ranks_ + member]; }
  size_t ranks_;
  std::unique_ptr<Word[]> words_;
};

template <class Body>
void on_threads(size_t ranks, const Body& body) {
  std::vector<std::jthread> threads;
  for (size_t rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { body(rank); });
}

TEST_CASE("ranks that meet before and behind a call see each other's inputs, and no later ones") {
  const size_t ranks = GENERATE(2, 3, 5);
  const uint32_t before = GENERATE(0u, 0xfffffff0u);  // the words wrap
  constexpr int kCalls = 60;
  Boards boards(ranks, before);
  std::vector<int> inputs(ranks);  // not atomic
  std::atomic<int> wrong = 0;
  on_threads(ranks, [&](size_t rank) {
    std::mt19937 random{unsigned(rank)};
    for (uint32_t call = 0; call < kCalls; ++call) {
      inputs[rank] = int(call);
      if (random() % 4 == 0) std::this_thread::yield();
      boards.barrier(rank, before + 2 * call + 1);
      for (const int input : inputs) wrong += input != int(call);
      boards.barrier(rank, before + 2 * call + 2);
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("a rank that does not come to a barrier keeps nobody once the host has given up") {
  const size_t ranks = 4;
  Boards boards(ranks, 0);
  std::atomic<int> gave_up = 0;
  on_threads(ranks, [&](size_t rank) {
    boards.barrier(rank, 1);
    if (rank == 2) {
      boards.aborted = true;
      return;
    }
    gave_up += boards.barrier(rank, 2) == BarrierEnd::kAborted;
  });
  CHECK(gave_up == 3);
}

}  // namespace
}  // namespace gxp
