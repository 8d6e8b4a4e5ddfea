// Offloaded bytes of a rank: in the host's memory, or in a file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/config/parallel_config.h"
#include "lib/device/device.h"

namespace gxp {

// A piece of the store, and the memory that it is read into or written from.
struct Transfer {
  uint64_t offset = 0;
  Memory memory;
};

//   Order     a Work of the stream that it was made with, or the caller while nothing is queued.
//             Data that were read are available to later work of the stream; the host waits for it,
//             and for what was written, with Stream::finish().
//   Content   zero where nothing was written; gone with the store.
//   Threads   one at a time.
//   Errors    kIo, naming the store, the place and the system's reason.
//   Cost      of a file: one system call and one copy where offset, size and address of a piece are
//             multiples of kBlockBytes; any others are copied block by block. Nothing is allocated.
class OffloadStore {
 public:
  static constexpr size_t kBlockBytes = 4096;

  virtual ~OffloadStore() = default;
  // How it works, for the log: "host memory", "/scratch, io_uring, O_DIRECT".
  [[nodiscard]] virtual std::string description() const = 0;
  [[nodiscard]] virtual uint64_t bytes() const = 0;
  // Return when all pieces are copied.
  void read(std::span<const Transfer> pieces) { copy(pieces, false); }
  void write(std::span<const Transfer> pieces) { copy(pieces, true); }
  virtual void copy(std::span<const Transfer> pieces, bool writes) = 0;
};

// In pinned memory of the device's host. kDevice: not that much memory.
std::unique_ptr<OffloadStore> make_memory_store(Device& device, Stream& stream, uint64_t bytes);

struct FileStoreOptions {
  std::string directory;  // that exists
  std::string name;       // in errors: "rank 3's optimizer state"
  OffloadIo io = OffloadIo::kAuto;
};

// An unlinked file, so that nothing is left of it however the process ends. All of its blocks are
// allocated at once: a full disk is found here, not in a step. Errors: kIo, with path, bytes needed
// and free; kUnavailable: io_uring is requested but missing. The description names a substitute
// for io_uring or O_DIRECT.
std::unique_ptr<OffloadStore> make_file_store(const FileStoreOptions& options, uint64_t bytes);

// Wraps `store` so that pieces may be in a device's memory: they go through two pinned buffers of
// some MiB, of which one is copied while the other is read or written.
std::unique_ptr<OffloadStore> make_staged_store(std::unique_ptr<OffloadStore> store, Device& device,
                                                Stream& stream);

}  // namespace gxp
