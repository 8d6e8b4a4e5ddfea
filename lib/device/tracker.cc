#include "lib/device/tracker.h"

#include <numeric>

#include "lib/base/error.h"

namespace gxp {

uint64_t MemoryUse::total() const {
  return std::accumulate(by_kind.begin(), by_kind.end(), uint64_t{0});
}

void MemoryTracker::add(MemoryKind kind, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  live_[kind] += bytes;
  ++allocation_count_;
  if (live_.total() > peak_.total()) peak_ = live_;
}

void MemoryTracker::remove(MemoryKind kind, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  GXP_ASSERT(live_[kind] >= bytes);
  live_[kind] -= bytes;
}

MemoryUse MemoryTracker::live() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

MemoryUse MemoryTracker::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

void MemoryTracker::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_ = live_;
}

uint64_t MemoryTracker::allocation_count() const {
  const std::lock_guard lock(mutex_);
  return allocation_count_;
}

}  // namespace gxp
