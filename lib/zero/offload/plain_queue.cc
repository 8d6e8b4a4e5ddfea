#include <unistd.h>

#include <cerrno>

#include "lib/base/bytes.h"
#include "lib/zero/offload/block_queue.h"

namespace gxp {
namespace {

class PlainQueue final : public BlockQueue {
 public:
  explicit PlainQueue(int fd) : fd_(fd) {}
  [[nodiscard]] std::string_view name() const override { return "pread and pwrite"; }

  void copy(std::span<const Block> blocks, bool writes) override {
    for (Block block : blocks) {
      while (block.bytes > 0) {
        const auto at = off_t(block.offset);
        const ssize_t done = writes ? ::pwrite(fd_, block.data, block.bytes, at)
                                    : ::pread(fd_, block.data, block.bytes, at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) fail_block(writes, block, done < 0 ? errno : 0);
        block = {block.offset + size_t(done), block.data + done, block.bytes - size_t(done)};
      }
    }
  }

 private:
  int fd_;
};

}  // namespace

void fail_block(bool writes, const Block& block, int error) {
  fail(ErrorKind::kIo, "{} {} at {}: {}", writes ? "write" : "read", format_bytes(block.bytes),
       format_bytes(block.offset), error == 0 ? "the file ends there" : system_text(error));
}

std::unique_ptr<BlockQueue> make_plain_queue(int fd) { return std::make_unique<PlainQueue>(fd); }

}  // namespace gxp
