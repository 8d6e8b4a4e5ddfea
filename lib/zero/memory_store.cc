#include <sys/mman.h>

#include <cstring>

#include "lib/base/bytes.h"
#include "lib/zero/offload_store.h"

namespace gxp {
namespace {

class MemoryStore final : public OffloadStore {
 public:
  explicit MemoryStore(uint64_t bytes) : bytes_(bytes) {
    void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
      fail(ErrorKind::kDevice,
           "offload to host memory: no {} there; use offload.optimizer = \"file\", or a lower "
           "offload.ratio",
           format_bytes(bytes));
    data_ = static_cast<std::byte*>(base);
    ::madvise(base, bytes, MADV_HUGEPAGE);  // a hint
    std::memset(base, 0, bytes);            // so that no step waits for pages
  }
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;
  ~MemoryStore() override { ::munmap(data_, bytes_); }

  [[nodiscard]] std::string description() const override { return "host memory"; }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }

  void read(std::span<const Transfer> pieces) override {
    for (const Transfer& piece : pieces)
      std::memcpy(piece.memory.data, at(piece), piece.memory.bytes);
  }
  void write(std::span<const Transfer> pieces) override {
    for (const Transfer& piece : pieces)
      std::memcpy(at(piece), piece.memory.data, piece.memory.bytes);
  }

 private:
  [[nodiscard]] std::byte* at(const Transfer& piece) const {
    GXP_ASSERT(piece.offset <= bytes_ && piece.memory.bytes <= bytes_ - piece.offset);
    return data_ + piece.offset;
  }

  uint64_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace

std::unique_ptr<OffloadStore> make_memory_store(uint64_t bytes) {
  return std::make_unique<MemoryStore>(bytes);
}

}  // namespace gxp
