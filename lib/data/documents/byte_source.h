// The bytes of a file one after another: as they are, or out of gzip or zstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/data/files/file_kind.h"

namespace gxp {

// Threads: one at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills the beginning of `out`, which is not empty; returns how many bytes, and 0 only at the end.
  // kIo; kCorrupt: the file has been cut since it was opened; of a compressed one: it is cut, its
  // checksum does not match, something else follows it, or it needs too much memory.
  virtual size_t read(std::span<char> out) = 0;
  // How much of the file has been read, in its own, compressed bytes. For progress.
  [[nodiscard]] virtual uint64_t consumed() const = 0;
};

// `kind` is kText, kGzip or kZstd. Members of a gzip file (RFC 1952) are one stream, and so are the
// frames of a zstd file (RFC 8878), between which frames may be skipped. A zstd frame may look back
// by 128 MiB, which every decoder must allow (zstd --long=27). kIo.
std::unique_ptr<ByteSource> open_bytes(const std::string& path, DataKind kind);

}  // namespace gxp
