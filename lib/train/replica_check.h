// Whether ranks that should hold the same weights and optimizer state do, to the bit. A bit that a
// faulty memory or device has flipped on one rank would be trained on, and saved.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/train/trainer.h"

namespace gxp {

class Communicator;

// What has copies: without sharding everything; with it what every rank holds all the same (some
// optimizer state; frozen weights where parameters are whole), and shards that have replicas.
//   Threads  one at a time, between steps.
class ReplicaCheck {
 public:
  // All outlive it.
  ReplicaCheck(Trainer& trainer, Communicator& communicator, Backend& backend);

  // [collective] kDevice, on every rank: copies differ; names the tensor, and the ranks that differ
  // from most of them. Cost: reading this rank's copies once, and 16 bytes from each rank.
  void check();

 private:
  // The ranks that hold a copy of what this rank holds.
  enum class Copies : uint8_t { kEverywhere, kReplicas };
  static constexpr size_t kCopies = 2;

  void add(const HeldTensor& tensor);
  [[nodiscard]] std::vector<int> holders(Copies copies, int rank) const;
  // Of `tensors`, as one.
  [[nodiscard]] uint64_t fingerprint(std::span<const HeldTensor> tensors);
  [[nodiscard]] uint64_t fingerprint_of_offloaded(const HeldTensor& tensor);
  // [collective] The numbers of all ranks, by rank.
  [[nodiscard]] std::vector<std::vector<uint64_t>> gather(const std::vector<uint64_t>& own) const;
  // [collective] Names what differs.
  [[noreturn]] void fail_on(Copies copies);

  Trainer& trainer_;
  Communicator& communicator_;
  Backend& backend_;
  std::array<std::vector<HeldTensor>, kCopies> tensors_;  // by Copies
};

}  // namespace gxp
