// A regular file of data, read by position.
//
// By pread, not mapped: a file that is cut while it is in use is an error here, where a mapping
// would end the process (SIGBUS).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lib/base/fd.h"

namespace gxp {

// Threads: const functions from any.
class SourceFile {
 public:
  // kIo: missing, not readable, or no regular file. `bytes`: what it had when it was opened before.
  explicit SourceFile(std::string path, std::optional<uint64_t> bytes = {});

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }  // when it was opened first
  // Fills all of `out` from byte `at` on, which lies within bytes(). kCorrupt: the file has been cut
  // since it was opened; kIo: the system's reason.
  void read(uint64_t at, std::span<std::byte> out) const;
  // One value of a type without padding, from byte `at` on.
  template <class T>
  [[nodiscard]] T value_at(uint64_t at) const {
    T value;
    read(at, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

 private:
  std::string path_;
  Fd fd_;
  uint64_t bytes_ = 0;
};

// hash_hex() of all bytes of a file: its content, whatever its name and its times are. Cost: reads
// the file once, and hashes 10 GB/s and more, so that reading is what takes time. kIo.
std::string content_hash(const std::string& path);

}  // namespace gxp
