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

  void read(std::span<const Block> blocks) override {
    transfer(blocks, "read", [this](const Block& block) {
      return ::pread(fd_, block.data, block.bytes, off_t(block.offset));
    });
  }
  void write(std::span<const Block> blocks) override {
    transfer(blocks, "write", [this](const Block& block) {
      return ::pwrite(fd_, block.data, block.bytes, off_t(block.offset));
    });
  }

 private:
  template <class Act>
  static void transfer(std::span<const Block> blocks, std::string_view verb, Act act) {
    for (Block block : blocks) {
      while (block.bytes > 0) {
        const ssize_t done = act(block);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) fail_block(verb, block, done < 0 ? errno : 0);
        block = {block.offset + size_t(done), block.data + done, block.bytes - size_t(done)};
      }
    }
  }

  int fd_;
};

}  // namespace

void fail_block(std::string_view act, const Block& block, int error) {
  fail(ErrorKind::kIo, "{} {} at {}: {}", act, format_bytes(block.bytes),
       format_bytes(block.offset), error == 0 ? "the file ends there" : system_text(error));
}

std::unique_ptr<BlockQueue> make_plain_queue(int fd) { return std::make_unique<PlainQueue>(fd); }

}  // namespace gxp
