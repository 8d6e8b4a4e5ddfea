#include "lib/device/device.h"

#include <utility>

#include "lib/base/bytes.h"

namespace gxp {
namespace {

// "activations 1.5 GiB, workspace 3 MiB": the kinds that hold bytes.
std::string describe(const MemoryUse& use) {
  std::string text;
  for (size_t kind = 0; kind < kMemoryKindCount; ++kind) {
    if (use.by_kind[kind] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kMemoryKindNames[kind],
                        format_bytes(use.by_kind[kind]));
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace

Buffer::Buffer(Device& device, Memory memory, const MemoryUse& use)
    : device_(&device), memory_(memory), use_(use) {}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      memory_(std::exchange(other.memory_, {})),
      use_(other.use_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer taken(std::move(other));
  std::swap(device_, taken.device_);
  std::swap(memory_, taken.memory_);
  std::swap(use_, taken.use_);
  return *this;
}

Buffer::~Buffer() {
  if (device_ == nullptr) return;
  device_->free_raw(memory_);
  for (size_t kind = 0; kind < kMemoryKindCount; ++kind) {
    device_->tracker_.remove(MemoryKind(kind), use_.by_kind[kind]);
  }
}

Memory grow(Buffer& buffer, size_t bytes, Device& device, MemoryKind kind) {
  if (buffer.memory().bytes < bytes) {
    buffer = {};  // not both at a time
    buffer = device.allocate(bytes, kind);
  }
  return buffer.memory().slice(0, bytes);
}

Buffer Device::allocate(size_t bytes, MemoryKind kind) {
  MemoryUse use;
  use[kind] = bytes;
  return allocate(use);
}

Buffer Device::allocate_host(size_t bytes) {
  const Memory memory = allocate_host_raw(bytes);
  if (memory.data == nullptr && bytes > 0)
    fail(ErrorKind::kDevice, "allocate {} of host memory: not enough is available",
         format_bytes(bytes));
  return {*this, memory, {}};
}

DmaBuf Device::export_memory(ConstMemory memory) {
  fail(ErrorKind::kUnavailable, "export {} of {}: {}", format_bytes(memory.bytes), description(),
       exports_memory().reason);
}

Buffer Device::allocate(const MemoryUse& use) { return allocate_by(&Device::allocate_raw, use); }

Buffer Device::allocate_shareable(const MemoryUse& use) {
  return allocate_by(&Device::allocate_shareable_raw, use);
}

Buffer Device::allocate_shareable(size_t bytes, MemoryKind kind) {
  MemoryUse use;
  use[kind] = bytes;
  return allocate_shareable(use);
}

Buffer Device::allocate_by(AllocateRaw allocate_memory, const MemoryUse& use) {
  const size_t bytes = use.total();
  if (limit_bytes_ > 0 && tracker_.live().total() + bytes > limit_bytes_) {
    fail(ErrorKind::kDevice,
         "allocate {} on {}: out of memory; its limit is {}, and in use: {}; see "
         "train.device_memory_bytes",
         describe(use), description(), format_bytes(limit_bytes_), describe(tracker_.live()));
  }
  const Memory memory = (this->*allocate_memory)(bytes);
  if (memory.data == nullptr && bytes > 0) {
    fail(ErrorKind::kDevice,
         "allocate {} on {}: out of memory; in use: {}; a smaller micro-batch or sequence needs "
         "less",
         describe(use), description(), describe(tracker_.live()));
  }
  for (size_t kind = 0; kind < kMemoryKindCount; ++kind) {
    if (use.by_kind[kind] > 0) tracker_.add(MemoryKind(kind), use.by_kind[kind]);
  }
  return {*this, memory, use};
}

}  // namespace gxp
