// A place that has memory and runs work: the CPU, a CUDA device, or, in tests, a simulated one.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/base/memory_kind.h"
#include "lib/device/device_sharing.h"
#include "lib/device/memory.h"
#include "lib/device/stream.h"
#include "lib/device/tracker.h"

namespace gxp {

class Device;

// Memory of a device as a file that other drivers map (Linux's DMA-BUF); the memory begins at
// `offset` in it.
struct DmaBuf {
  Fd file;
  uint64_t offset = 0;
};

// Owned memory, counted by its device's tracker until destruction; the device outlives it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, Memory memory, const MemoryUse& use);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();
  [[nodiscard]] Memory memory() const { return memory_; }

 private:
  Device* device_ = nullptr;
  Memory memory_;
  MemoryUse use_;
};

// Threads: allocate and make_* from any thread.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual std::string description() const = 0;  // "cpu, 2 cores"
  // Zeroed memory, aligned to 64 bytes (CPU: to 4 KiB from there on, above 1 MiB with huge pages
  // where the system gives them). Zero bytes are allowed. Throws kDevice with the bytes wanted and
  // the bytes in use.
  [[nodiscard]] Buffer allocate(size_t bytes, MemoryKind kind);
  // One piece of memory that serves several kinds: use.total() bytes.
  [[nodiscard]] Buffer allocate(const MemoryUse& use);
  // The same, in memory that peers can map, for what collectives work on: whole pages of the device
  // (2 MiB of a GPU) each. Where sharing() has no support, it is allocate(), and calls copy.
  [[nodiscard]] Buffer allocate_shareable(const MemoryUse& use);
  [[nodiscard]] Buffer allocate_shareable(size_t bytes, MemoryKind kind);
  // How peers map its memory; null: it has none of its own (the host's, see transport/arena).
  [[nodiscard]] virtual DeviceSharing* sharing() { return nullptr; }
  [[nodiscard]] virtual std::unique_ptr<Stream> make_stream(std::string_view name) = 0;
  // A stream whose work goes first where the device can choose among several.
  [[nodiscard]] virtual std::unique_ptr<Stream> make_urgent_stream(std::string_view name) {
    return make_stream(name);
  }
  [[nodiscard]] virtual std::unique_ptr<Event> make_event() = 0;
  // Its place on PCIe, "0000:3b:00.0"; "": it has none.
  [[nodiscard]] virtual std::string bus_id() const { return ""; }
  // The space of its memory.
  [[nodiscard]] virtual MemorySpace space() const { return MemorySpace::kHost; }
  // Zeroed memory of the host, which a GPU copies to and from at full speed while it computes. Not
  // counted. Throws kDevice.
  [[nodiscard]] Buffer allocate_host(size_t bytes);
  // Copies between any two spaces, and returns when it is done. Equal sizes; streams that write
  // `from` or use `to` have been synchronised.
  virtual void copy(Memory to, ConstMemory from) { copy_on_host(to, from); }
  // Whether export_memory() works; if not, why.
  [[nodiscard]] virtual Support exports_memory() const { return {false, "it is no GPU"}; }
  // For memory of this device, as long as that lives. Throws kDevice, kUnavailable.
  [[nodiscard]] virtual DmaBuf export_memory(ConstMemory memory);
  // Free bytes according to its driver; 0: unknown.
  [[nodiscard]] virtual uint64_t free_bytes() const { return 0; }
  // Tells a profiler that waits for it to begin, or to end (nsys --capture-range=cudaProfilerApi).
  // Without one it does nothing; nor does a device that has none. Throws kDevice.
  virtual void set_profiled(bool profiled) { static_cast<void>(profiled); }
  // Limits the bytes that are allocated at the same time; 0: no limit.
  void set_limit(uint64_t bytes) { limit_bytes_ = bytes; }
  [[nodiscard]] MemoryTracker& tracker() { return tracker_; }

 protected:
  friend class Buffer;
  // Without data if there is not enough memory.
  virtual Memory allocate_raw(size_t bytes) = 0;
  virtual Memory allocate_shareable_raw(size_t bytes) { return allocate_raw(bytes); }
  virtual Memory allocate_host_raw(size_t bytes) { return allocate_raw(bytes); }
  virtual void free_raw(Memory memory) noexcept = 0;  // of any of them

 private:
  using AllocateRaw = Memory (Device::*)(size_t bytes);
  Buffer allocate_by(AllocateRaw allocate_memory, const MemoryUse& use);

  MemoryTracker tracker_;
  uint64_t limit_bytes_ = 0;
};

// The first `bytes` of `buffer`, which is replaced by a larger one if it is too small; its content
// is lost then. For scratch memory.
Memory grow(Buffer& buffer, size_t bytes, Device& device, MemoryKind kind);

// The CPU: memory from the system, streams that are threads named after their lane.
std::unique_ptr<Device> make_cpu_device();

}  // namespace gxp
