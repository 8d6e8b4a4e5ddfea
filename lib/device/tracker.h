// Counts the bytes that are live on a device, by kind, and remembers the peak.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "lib/base/memory_kind.h"

namespace gxp {

struct MemoryUse {
  std::array<uint64_t, kMemoryKindCount> by_kind{};
  [[nodiscard]] uint64_t total() const;
  uint64_t& operator[](MemoryKind kind) { return by_kind[static_cast<size_t>(kind)]; }
  uint64_t operator[](MemoryKind kind) const { return by_kind[static_cast<size_t>(kind)]; }
};

// Threads: any. Cost: a mutex; called per buffer and per operation of a step, never per element.
class MemoryTracker {
 public:
  void add(MemoryKind kind, uint64_t bytes);
  // GXP_ASSERTs that no more is removed than was added.
  void remove(MemoryKind kind, uint64_t bytes);
  [[nodiscard]] MemoryUse live() const;
  // The use at the moment of the highest total since construction or reset_peak().
  [[nodiscard]] MemoryUse peak() const;
  void reset_peak();
  // How often add() was called: a step that allocates nothing leaves it unchanged.
  [[nodiscard]] uint64_t allocation_count() const;

 private:
  mutable std::mutex mutex_;  // guards all below
  MemoryUse live_;
  MemoryUse peak_;
  uint64_t allocation_count_ = 0;
};

}  // namespace gxp
