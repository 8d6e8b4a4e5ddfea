#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/fd.h"
#include "lib/zero/offload/block_queue.h"
#include "lib/zero/offload/offload_store.h"

namespace gxp {
namespace {

// The size of one read or write: several are in flight, so larger ones gain nothing.
constexpr size_t kPieceBytes = size_t{1} << 20;

struct Free {
  void operator()(std::byte* data) const { std::free(data); }
};

[[noreturn]] void fail_full(const FileStoreOptions& options, uint64_t bytes, uint64_t free) {
  fail(ErrorKind::kIo,
       "offload {} to {}: it needs {} and {} are free; free some, set offload.path to a directory "
       "of a larger disk, or lower offload.ratio",
       options.name, options.directory, format_bytes(bytes), format_bytes(free));
}

uint64_t free_bytes(const FileStoreOptions& options) {
  struct statvfs disk {};
  check_sys(::statvfs(options.directory.c_str(), &disk),
            fmt::format("offload {} to {}", options.name, options.directory));
  return uint64_t{disk.f_bavail} * disk.f_frsize;
}

Fd open_unnamed(const FileStoreOptions& options) {
  std::string path = options.directory + "/gxp-offload-XXXXXX";
  Fd fd(int(check_sys(::mkostemp(path.data(), O_CLOEXEC),
                      fmt::format("offload {}: create {}", options.name, path))));
  ::unlink(path.c_str());
  return fd;
}

void take_blocks(int fd, const FileStoreOptions& options, uint64_t bytes) {
  const uint64_t free = free_bytes(options);
  if (bytes > free) fail_full(options, bytes, free);
  const int error = ::posix_fallocate(fd, 0, off_t(bytes));
  if (error == ENOSPC || error == EDQUOT) fail_full(options, bytes, free);
  if (error != 0)
    fail(ErrorKind::kIo, "offload {} to {}: take {}: {}", options.name, options.directory,
         format_bytes(bytes), system_text(error));
}

class FileStore final : public OffloadStore {
 public:
  FileStore(const FileStoreOptions& options, uint64_t bytes)
      : options_(options), bytes_(bytes), fd_(open_unnamed(options)) {
    take_blocks(fd_.get(), options, bytes);
    bounce_.reset(static_cast<std::byte*>(std::aligned_alloc(kBlockBytes, kPieceBytes)));
    GXP_ASSERT(bounce_ != nullptr);
    is_direct_ = make_direct();
    open_queue();
  }

  [[nodiscard]] std::string description() const override {
    return fmt::format("a file in {}, {}{}, {}", options_.directory, queue_->name(), substitute_,
                       is_direct_ ? "O_DIRECT" : "through the page cache, as it has no O_DIRECT");
  }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }

  void copy(std::span<const Transfer> pieces, bool writes) override {
    try {
      queue_->copy(cut(pieces), writes);
      for (const Transfer& piece : pieces) {
        if (!is_aligned(piece)) bounce(piece, writes);
      }
    } catch (const Error& error) {
      fail(error.kind(), "offload {} to {}: {}", options_.name, options_.directory, error.what());
    }
  }

 private:
  // Some file systems take the flag, and refuse the first write.
  [[nodiscard]] bool make_direct() {
    const int flags = ::fcntl(fd_.get(), F_GETFL);
    if (::fcntl(fd_.get(), F_SETFL, flags | O_DIRECT) != 0) return false;
    std::memset(bounce_.get(), 0, kBlockBytes);
    if (::pwrite(fd_.get(), bounce_.get(), kBlockBytes, 0) == ssize_t{kBlockBytes}) return true;
    check_sys(::fcntl(fd_.get(), F_SETFL, flags), "clear O_DIRECT");
    return false;
  }

  void open_queue() {
    if (options_.io != OffloadIo::kPread) {
      Support support;
      queue_ = make_uring_queue(fd_.get(), support);
      if (queue_ != nullptr) return;
      if (options_.io == OffloadIo::kIoUring)
        fail(ErrorKind::kUnavailable, "offload.io io_uring: {}; use auto or pread", support.reason);
      substitute_ = fmt::format(" ({})", support.reason);
    }
    queue_ = make_plain_queue(fd_.get());
  }

  [[nodiscard]] bool is_aligned(const Transfer& piece) const {
    const auto address = reinterpret_cast<uintptr_t>(piece.memory.data);
    return !is_direct_ || (piece.offset | piece.memory.bytes | address) % kBlockBytes == 0;
  }

  // The aligned pieces as blocks of at most kPieceBytes.
  std::span<const Block> cut(std::span<const Transfer> pieces) {
    blocks_.clear();
    for (const Transfer& piece : pieces) {
      GXP_ASSERT(piece.offset <= bytes_ && piece.memory.bytes <= bytes_ - piece.offset);
      if (!is_aligned(piece)) continue;
      for (size_t done = 0; done < piece.memory.bytes; done += kPieceBytes)
        blocks_.push_back({piece.offset + done, piece.memory.data + done,
                           std::min(kPieceBytes, piece.memory.bytes - done)});
    }
    return blocks_;
  }

  // Copies a piece through the aligned blocks that contain it, some at a time.
  void bounce(const Transfer& piece, bool writes) {
    for (size_t done = 0; done < piece.memory.bytes;) {
      const uint64_t begin = (piece.offset + done) / kBlockBytes * kBlockBytes;
      const size_t skip = size_t(piece.offset + done - begin);
      const size_t bytes = std::min(piece.memory.bytes - done, kPieceBytes - skip);
      const Block whole{begin, bounce_.get(), round_up(skip + bytes, kBlockBytes)};
      queue_->copy({&whole, 1}, false);
      std::byte* outside = piece.memory.data + done;
      std::byte* inside = bounce_.get() + skip;
      std::memcpy(writes ? inside : outside, writes ? outside : inside, bytes);
      if (writes) queue_->copy({&whole, 1}, true);
      done += bytes;
    }
  }

  const FileStoreOptions options_;
  const uint64_t bytes_;
  Fd fd_;
  std::unique_ptr<std::byte, Free> bounce_;  // kPieceBytes, aligned
  bool is_direct_ = false;
  std::string substitute_;  // why not io_uring
  std::unique_ptr<BlockQueue> queue_;
  std::vector<Block> blocks_;  // reused
};

}  // namespace

std::unique_ptr<OffloadStore> make_file_store(const FileStoreOptions& options, uint64_t bytes) {
  GXP_ASSERT(bytes % OffloadStore::kBlockBytes == 0);
  return std::make_unique<FileStore>(options, bytes);
}

}  // namespace gxp
