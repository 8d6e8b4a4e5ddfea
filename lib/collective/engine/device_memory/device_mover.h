// Moves and folds parts of buffers in devices' memory (part_mover.h): copies by the device's copy
// engines, folds by its kernels, both queued on a stream, for which finish() waits.
#pragma once

#include "lib/collective/engine/device_memory/device_peers.h"
#include "lib/collective/engine/shared_memory/part_mover.h"

namespace gxp {

class DeviceMover final : public PartMover {
 public:
  explicit DeviceMover(GroupSync& sync) : PartMover(sync) {}
  // For the calls from now on, which are queued on `stream`; folds take so many blocks at most
  // (FoldOptions).
  void use(DevicePeers& peers, Stream& stream, unsigned blocks) {
    peers_ = &peers;
    stream_ = &stream;
    blocks_ = blocks;
  }

  void fetch(bool mapped, int rank, const std::byte* there, std::byte* here, size_t bytes) override;
  void store(bool mapped, int rank, std::byte* there, const std::byte* here, size_t bytes) override;
  void copy(std::byte* to, const std::byte* from, size_t bytes) override;
  void copy_input(const Invocation& inv, std::byte* to, Range range) override;
  void run_fold(const Call& call, size_t bytes, bool by_copies) override;
  [[nodiscard]] std::byte* staging(int rank) const override {
    return peers_->scratch(sync_.member(rank));
  }
  void expect_write(std::byte* /*target*/, size_t /*bytes*/) override {}
  [[nodiscard]] size_t swapped_bytes(bool /*mapped*/) const override {
    return DevicePeers::kScratchBytes;
  }
  void finish(const Invocation& inv) override { stream_->finish(inv.deadline); }

 private:
  DevicePeers* peers_ = nullptr;
  Stream* stream_ = nullptr;
  unsigned blocks_ = 0;
};

}  // namespace gxp
