// The micro-batches of one rank, read ahead by a thread of its own.
//
// With N ranks and b rows per micro-batch, the k-th micro-batch after start(base) (k counts over
// steps: s * grad_accum + m) holds on rank r the samples at positions base + k*N*b + r*b + (0..b-1)
// of the order. So base + k*N*b samples are consumed by all ranks before it, and a run resumes at
// any world size by start(samples consumed). With `in_a_row` = a > 1 a rank's share of a step is
// contiguous: the j-th of every a micro-batches begins at base + (k - j)*N*b + (r*a + j)*b.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "lib/base/deadline.h"
#include "lib/data/data_order.h"
#include "lib/data/dataset.h"
#include "lib/tensor/tensor.h"

namespace gxp {

inline constexpr std::chrono::seconds kDataTimeout{300};  // a disk that hangs longer is broken

struct BatchShare {
  int rank = 0;
  int world_size = 1;
  int rows = 1;      // train.micro_batch
  int in_a_row = 1;  // micro-batches of one rank that follow each other in the order
  int per_step = 0;  // micro-batches of one rank in a step; 0: step_targets() is not asked for
  // A dataset's documents are kept apart: document_begin is made, and a target that is the first
  // token of a document does not count.
  bool documents = false;
};

// A micro-batch: i32 tensors of shape (rows, sequence) in the host's memory.
struct BatchTensors {
  Tensor tokens;
  Tensor targets;              // one that does not count is negative
  Tensor document_begin = {};  // as kernels/ops.h has it; empty without BatchShare::documents
};

// Ownership: the dataset must outlive the loader. Threads: one caller.
// Cost: memory for `depth` micro-batches, allocated once; next() copies one of them.
class BatchLoader {
 public:
  BatchLoader(const Dataset& dataset, const DataOrder& order, const BatchShare& share,
              int depth = 4);
  ~BatchLoader();

  // Begins to read ahead from `position`; drops what was read ahead before. Also restarts after an
  // error.
  void start(uint64_t position);
  // Fills the tensors. Only after start(). Returns the position of the first sample; the others follow
  // it.
  // Throws what reading this micro-batch threw (and again on every later call); kIo when the
  // deadline passes. If that read still hangs when the loader is destroyed, the destructor waits 10
  // s and then ends the process, with kIo's exit code.
  uint64_t next(const BatchTensors& batch, Deadline deadline);
  // How many targets count in the step of the micro-batch that next() gave last, on all ranks. A
  // rank counts them itself: it reads the labels of all ranks' samples, but tokens only of its own
  // unless documents are kept apart.
  [[nodiscard]] uint64_t step_targets() const { return step_targets_; }

 private:
  // One micro-batch read ahead: its samples, of sequence + 1 tokens and labels each.
  struct Slot {
    std::vector<int32_t> tokens, labels;
    std::vector<int32_t> begins;  // of documents: zeros where the dataset has none
    uint64_t step_targets = 0;
  };
  using Elements = std::span<int32_t>;  // of one sample

  // Of the first sample of a micro-batch, counted since start().
  [[nodiscard]] uint64_t position_of(uint64_t batch) const;
  void stop();
  void read_ahead(const std::stop_token& stop);
  void read_samples(Slot& slot, uint64_t position) const;
  void read_documents(uint64_t sample, Elements tokens, Elements labels, Elements begins) const;
  [[nodiscard]] uint64_t count_targets(uint64_t begin, uint64_t samples) const;

  const Dataset& dataset_;
  const DataOrder order_;
  const BatchShare share_;
  const bool keeps_apart_;  // documents that there are
  uint64_t step_targets_ = 0;
  std::vector<Slot> slots_;  // slot k % size: for the reader until written_ > k, then for next()
  std::mutex mutex_;         // guards the next four
  uint64_t written_ = 0;     // micro-batches read since start()
  uint64_t taken_ = 0;       // micro-batches given to next() since start()
  std::exception_ptr error_;
  bool runs_ = false;
  uint64_t base_ = 0;  // of start()
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace gxp
