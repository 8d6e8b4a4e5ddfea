// Reads and writes blocks of one file: many at a time where the OS has io_uring, else one after
// the other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace gxp {

struct Block {
  uint64_t offset = 0;  // in the file
  std::byte* data = nullptr;
  size_t bytes = 0;
};

//   Threads   one at a time.
//   Errors    kIo: "write 1 MiB at 3 GiB: No space left on device", also when the file ends early
//             or the disk is silent for 300 s. Nothing is under way after an error.
class BlockQueue {
 public:
  virtual ~BlockQueue() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Returns when all blocks are read into their memory, or written from it.
  virtual void copy(std::span<const Block> blocks, bool writes) = 0;
};

// pread and pwrite on the caller's thread. `fd` outlives the queue.
std::unique_ptr<BlockQueue> make_plain_queue(int fd);

// Null, with the reason in `support`, if gxp was built without liburing or the OS refuses.
std::unique_ptr<BlockQueue> make_uring_queue(int fd, Support& support);

// The error of both queues for a block that failed. `error`: errno, or 0 at the end of the file.
[[noreturn]] void fail_block(bool writes, const Block& block, int error);

}  // namespace gxp
