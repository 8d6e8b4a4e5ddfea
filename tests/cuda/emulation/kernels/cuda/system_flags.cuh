// Words that emulated GPUs of several threads or processes share; found in place of kernels/cuda's
// header.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "tests/cuda/emulation/streams.h"

namespace gxp {

inline uint32_t load_acquire(const uint32_t* word) {
  return std::atomic_ref(*const_cast<uint32_t*>(word)).load(std::memory_order_acquire);
}

inline void store_release(uint32_t* word, uint32_t value) {
  std::atomic_ref(*word).store(value, std::memory_order_release);
}

inline uint64_t clock_ns() {
  return uint64_t(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

inline void rest_ns(unsigned ns) { emulation::pass_turn(std::chrono::nanoseconds(ns)); }

}  // namespace gxp
