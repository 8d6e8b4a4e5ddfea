// liburing: Jens Axboe, "Efficient IO with io_uring", kernel.dk/io_uring.pdf.
#include <array>
#include <cerrno>

#include "lib/zero/offload/block_queue.h"

#ifdef GXP_HAS_URING
#include <liburing.h>
#endif

namespace gxp {

#ifdef GXP_HAS_URING
namespace {

constexpr unsigned kDepth = 16;        // blocks under way; an NVMe disk is busy from about 4 MiB on
constexpr long kSilenceSeconds = 300;  // a disk that says nothing for longer is broken

class UringQueue final : public BlockQueue {
 public:
  explicit UringQueue(int fd) : fd_(fd) {}
  UringQueue(const UringQueue&) = delete;
  UringQueue& operator=(const UringQueue&) = delete;
  ~UringQueue() override {
    if (is_open_) ::io_uring_queue_exit(&ring_);
  }

  // 0, or the OS's refusal.
  int open() {
    const int error = -::io_uring_queue_init(kDepth, &ring_, 0);
    is_open_ = error == 0;
    return error;
  }

  [[nodiscard]] std::string_view name() const override { return "io_uring"; }
  void copy(std::span<const Block> blocks, bool writes) override {
    size_t next = 0;
    unsigned under_way = 0;
    first_error_ = 0;
    for (unsigned slot = 0; slot < kDepth && next < blocks.size(); ++slot, ++under_way)
      start(slot, blocks[next++], writes);
    while (under_way > 0) {
      const unsigned slot = finish_one(writes);
      const bool failed = first_error_ != 0;
      if (!failed && slots_[slot].bytes > 0) {
        start(slot, slots_[slot], writes);  // the rest of a short one
      } else if (!failed && next < blocks.size()) {
        start(slot, blocks[next++], writes);
      } else {
        --under_way;
      }
    }
    if (first_error_ != 0) fail_block(writes, failed_, first_error_ == kEnd ? 0 : first_error_);
  }

 private:
  void start(unsigned slot, const Block& block, bool writes) {
    slots_[slot] = block;
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    GXP_ASSERT(entry != nullptr);
    const auto bytes = unsigned(block.bytes);
    if (writes)
      ::io_uring_prep_write(entry, fd_, block.data, bytes, block.offset);
    else
      ::io_uring_prep_read(entry, fd_, block.data, bytes, block.offset);
    ::io_uring_sqe_set_data64(entry, slot);
  }

  // Waits for one block, and says which.
  unsigned finish_one(bool writes) {
    io_uring_cqe* done = nullptr;
    __kernel_timespec silence = {.tv_sec = kSilenceSeconds, .tv_nsec = 0};
    ::io_uring_submit(&ring_);
    int error = 0;
    do {
      error = -::io_uring_wait_cqe_timeout(&ring_, &done, &silence);
    } while (error == EINTR);
    // The OS may still use the memory; there is no way to go on.
    if (error != 0) fail_block(writes, slots_[0], error);
    const auto slot = unsigned(::io_uring_cqe_get_data64(done));
    note(slots_[slot], done->res);
    ::io_uring_cqe_seen(&ring_, done);
    return slot;
  }

  void note(Block& block, int result) {
    if (result == -EINTR || result == -EAGAIN) return;
    if (result > 0) {
      const auto bytes = size_t(result);
      block = {block.offset + bytes, block.data + bytes, block.bytes - bytes};
    } else if (first_error_ == 0) {
      first_error_ = result == 0 ? kEnd : -result;
      failed_ = block;
    }
  }

  static constexpr int kEnd = -1;  // the file ends

  int fd_;
  io_uring ring_{};
  bool is_open_ = false;
  std::array<Block, kDepth> slots_;  // what is left of the blocks under way
  int first_error_ = 0;              // errno or kEnd
  Block failed_;
};

}  // namespace

std::unique_ptr<BlockQueue> make_uring_queue(int fd, Support& support) {
  auto queue = std::make_unique<UringQueue>(fd);
  const int error = queue->open();
  if (error == 0) return queue;
  support = {false, "io_uring: " + system_text(error)};
  return nullptr;
}

#else

std::unique_ptr<BlockQueue> make_uring_queue(int /*fd*/, Support& support) {
  support = {false, "this gxp is built without liburing"};
  return nullptr;
}

#endif

}  // namespace gxp
