#include "lib/ckpt/read_ahead.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "lib/base/log.h"

namespace gxp {
namespace {

constexpr size_t kBlocksAhead = 4;

class AheadReader {
 public:
  explicit AheadReader(std::span<const NamedTensor* const> tensors)
      : tensors_(tensors), thread_([this, rank = log_rank()] {
          set_log_rank(rank);
          read_all();
        }) {}

  ~AheadReader() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
  }

  struct Block {
    const NamedTensor* tensor = nullptr;
    std::vector<std::byte> bytes = {};
  };

  // The next block; nothing after the last one.
  std::optional<Block> take() {
    std::unique_lock lock(mutex_);
    // ends: as read(2) does, which the thread is in; a signal ends the process meanwhile
    changed_.wait(lock, [&] { return !read_.empty() || ended_; });
    if (read_.empty()) {
      if (error_ != nullptr) std::rethrow_exception(error_);
      return std::nullopt;
    }
    Block block = std::move(read_.front());
    read_.pop_front();
    return block;
  }

  // Its buffer is used again.
  void give_back(Block block) {
    {
      const std::lock_guard lock(mutex_);
      free_.push_back(std::move(block.bytes));
    }
    changed_.notify_all();
  }

 private:
  void read_all() noexcept {
    std::exception_ptr error;
    try {
      for (const NamedTensor* tensor : tensors_) {
        if (!read_tensor(*tensor)) break;
      }
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      error_ = error;
      ended_ = true;
    }
    changed_.notify_all();
  }

  // Whether to go on.
  bool read_tensor(const NamedTensor& tensor) {
    const size_t element = size_of(tensor.info.dtype);
    const uint64_t bytes = tensor.info.bytes();
    uint64_t done = 0;
    do {
      std::optional<std::vector<std::byte>> buffer = free_buffer();
      if (!buffer) return false;
      buffer->resize(std::min<uint64_t>(bytes - done, kStreamedBytes));
      if (!buffer->empty()) tensor.read(done / element, memory_of(*buffer));
      done += buffer->size();
      {
        const std::lock_guard lock(mutex_);
        read_.push_back({&tensor, std::move(*buffer)});
      }
      changed_.notify_all();
    } while (done < bytes);
    return true;
  }

  // Nothing if the caller has left.
  std::optional<std::vector<std::byte>> free_buffer() {
    std::unique_lock lock(mutex_);
    // ends: as write(2) does, which the caller is in, or when it leaves
    changed_.wait(lock, [&] { return !free_.empty() || stopped_; });
    if (stopped_) return std::nullopt;
    std::vector<std::byte> buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }

  const std::span<const NamedTensor* const> tensors_;
  std::mutex mutex_;  // of all below but the thread
  std::condition_variable changed_;
  std::deque<Block> read_;
  std::vector<std::vector<std::byte>> free_ = std::vector<std::vector<std::byte>>(kBlocksAhead);
  std::exception_ptr error_;
  bool ended_ = false;
  bool stopped_ = false;
  std::jthread thread_;  // the last member: joined while the others are there
};

}  // namespace

void stream_ahead(std::span<const NamedTensor* const> tensors,
                  const std::function<void(const NamedTensor&, ConstMemory)>& sink) {
  AheadReader reader(tensors);
  while (auto block = reader.take()) {
    sink(*block->tensor, memory_of(std::as_const(block->bytes)));
    reader.give_back(std::move(*block));
  }
}

}  // namespace gxp
