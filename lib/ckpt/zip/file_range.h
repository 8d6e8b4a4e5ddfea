// A range of an open file: a zip inside a file, a record of the zip, a storage in the record.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/ckpt/file.h"

namespace gxp {

// Threads: const functions from any.
struct FileRange {
  std::shared_ptr<const InputFile> file;  // owners: the ranges of it that are still read
  uint64_t offset = 0;                    // in the file
  uint64_t bytes = 0;

  static FileRange whole(std::shared_ptr<const InputFile> file) {
    const uint64_t bytes = file->bytes();
    return {std::move(file), 0, bytes};
  }
  // kIo as InputFile.
  static FileRange open(const std::string& path) {
    return whole(std::make_shared<const InputFile>(path));
  }

  [[nodiscard]] bool holds(uint64_t begin, uint64_t length) const {
    return begin <= bytes && length <= bytes - begin;
  }
  // kCorrupt if that is not in the range; `what` is for the message: "the zip at offset 17".
  [[nodiscard]] FileRange part(uint64_t begin, uint64_t length, const std::string& what) const {
    if (!holds(begin, length))
      fail(ErrorKind::kCorrupt, "read {}: {} would take {} bytes at {}, beyond the end at {}",
           file->path(), what, length, offset + begin, offset + bytes);
    return {file, offset + begin, length};
  }
  // kCorrupt as part() and InputFile::read().
  void read(uint64_t begin, Memory out) const {
    file->read(part(begin, out.bytes, "what is read").offset, out);
  }
};

}  // namespace gxp
