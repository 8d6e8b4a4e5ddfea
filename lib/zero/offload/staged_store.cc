#include <algorithm>
#include <utility>

#include "lib/zero/offload/offload_store.h"

namespace gxp {
namespace {

// A half takes longer than a seek or the start of a copy, and is a multiple of kBlockBytes.
constexpr size_t kHalfBytes = size_t{8} << 20;

class StagedStore final : public OffloadStore {
 public:
  StagedStore(std::unique_ptr<OffloadStore> store, Device& device, Stream& stream)
      : store_(std::move(store)), stream_(stream), pinned_(device.allocate_host(2 * kHalfBytes)) {}

  [[nodiscard]] std::string description() const override { return store_->description(); }
  [[nodiscard]] uint64_t bytes() const override { return store_->bytes(); }

  void copy(std::span<const Transfer> pieces, bool writes) override {
    for (const Transfer& piece : pieces) {
      if (piece.memory.space == MemorySpace::kHost)
        store_->copy({&piece, 1}, writes);
      else if (writes)
        write_staged(piece);
      else
        read_staged(piece);
    }
  }

 private:
  void read_staged(const Transfer& piece) {
    for (size_t done = 0; done < piece.memory.bytes; done += kHalfBytes) {
      const Transfer half = staged(piece, done);
      store_->read({&half, 1});
      finish();  // the half before is copied
      stream_.copy(piece.memory.slice(done, half.memory.bytes), half.memory);
    }
    finish();
  }

  void write_staged(const Transfer& piece) {
    fetch(piece, 0);
    for (size_t done = 0; done < piece.memory.bytes; done += kHalfBytes) {
      finish();
      fetch(piece, done + kHalfBytes);
      const Transfer half = staged(piece, done);
      store_->write({&half, 1});
    }
  }

  void finish() { stream_.finish(Deadline::after(kComputeTimeout)); }

  // From byte `done` of a piece, as much as one half takes.
  [[nodiscard]] Transfer staged(const Transfer& piece, size_t done) const {
    const size_t bytes = std::min(kHalfBytes, piece.memory.bytes - done);
    const size_t begin = done / kHalfBytes % 2 * kHalfBytes;
    return {piece.offset + done, pinned_.memory().slice(begin, bytes)};
  }

  // Starts the copy of the half at `done` to pinned memory, if the piece goes that far.
  void fetch(const Transfer& piece, size_t done) {
    if (done >= piece.memory.bytes) return;
    const Memory half = staged(piece, done).memory;
    stream_.copy(half, piece.memory.slice(done, half.bytes));
  }

  std::unique_ptr<OffloadStore> store_;
  Stream& stream_;
  Buffer pinned_;
};

}  // namespace

std::unique_ptr<OffloadStore> make_staged_store(std::unique_ptr<OffloadStore> store, Device& device,
                                                Stream& stream) {
  return std::make_unique<StagedStore>(std::move(store), device, stream);
}

}  // namespace gxp
