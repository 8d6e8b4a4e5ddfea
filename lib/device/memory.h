// Non-owning views of raw memory, on the host or on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "lib/base/error.h"

namespace gxp {

enum class MemorySpace : uint8_t { kHost, kCuda };

// `bytes` bytes at `data`. Borrows: the owner (a Buffer, a vector, a mapping) must outlive it.
struct ConstMemory {
  const std::byte* data = nullptr;
  size_t bytes = 0;
  MemorySpace space = MemorySpace::kHost;

  [[nodiscard]] ConstMemory slice(size_t offset, size_t length) const {
    GXP_ASSERT(offset <= bytes && length <= bytes - offset);
    return {data + offset, length, space};
  }
};

struct Memory {
  std::byte* data = nullptr;
  size_t bytes = 0;
  MemorySpace space = MemorySpace::kHost;

  operator ConstMemory() const { return {data, bytes, space}; }  // NOLINT: a view of the same bytes
  [[nodiscard]] Memory slice(size_t offset, size_t length) const {
    GXP_ASSERT(offset <= bytes && length <= bytes - offset);
    return {data + offset, length, space};
  }
};

// Both are host memory, of equal size.
inline void copy_on_host(Memory to, ConstMemory from) {
  GXP_ASSERT(to.bytes == from.bytes);
  GXP_ASSERT(to.space == MemorySpace::kHost && from.space == MemorySpace::kHost);
  if (to.bytes > 0) std::memcpy(to.data, from.data, to.bytes);
}

// Host memory of a contiguous container of trivially copyable elements.
template <class Container>
Memory memory_of(Container& container) {
  const auto bytes = std::as_writable_bytes(std::span(container));
  return {bytes.data(), bytes.size(), MemorySpace::kHost};
}
template <class Container>
ConstMemory memory_of(const Container& container) {
  const auto bytes = std::as_bytes(std::span(container));
  return {bytes.data(), bytes.size(), MemorySpace::kHost};
}

}  // namespace gxp
