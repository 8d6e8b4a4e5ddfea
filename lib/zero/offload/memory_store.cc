#include <cstring>

#include "lib/base/bytes.h"
#include "lib/zero/offload/offload_store.h"

namespace gxp {
namespace {

Buffer allocate(Device& device, uint64_t bytes) {
  try {
    return device.allocate_host(bytes);
  } catch (const Error& error) {
    fail(error.kind(),
         "offload to host memory: {}; use offload.optimizer = \"file\", or a lower offload.ratio",
         error.what());
  }
}

class MemoryStore final : public OffloadStore {
 public:
  MemoryStore(Device& device, Stream& stream, uint64_t bytes)
      : stream_(stream), buffer_(allocate(device, bytes)) {
    std::memset(buffer_.memory().data, 0, bytes);  // so that no step waits for pages
  }

  [[nodiscard]] std::string description() const override { return "host memory"; }
  [[nodiscard]] uint64_t bytes() const override { return buffer_.memory().bytes; }

  void copy(std::span<const Transfer> pieces, bool writes) override {
    for (const Transfer& piece : pieces) {
      const Memory at = buffer_.memory().slice(piece.offset, piece.memory.bytes);
      stream_.copy(writes ? at : piece.memory, writes ? piece.memory : at);
    }
  }

 private:
  Stream& stream_;
  Buffer buffer_;
};

}  // namespace

std::unique_ptr<OffloadStore> make_memory_store(Device& device, Stream& stream, uint64_t bytes) {
  return std::make_unique<MemoryStore>(device, stream, bytes);
}

}  // namespace gxp
