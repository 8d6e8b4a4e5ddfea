// One file of tokens. The kinds are told apart by content, and raw rows by name:
//   text      any other file: one token a byte (tokenizer "byte", ids 0 to 255)
//   llm.c     .bin shards: 1,024 bytes of header (256 little-endian int32: magic, version, count),
//             then tokens; magic 20240520 version 1: uint16; magic 20240801 version 7: uint32
//   rows      *.i32: little-endian int32 without a header; a row is a sample of sequence + 1 tokens
// Source: github.com/karpathy/llm.c, llmc/dataloader.h and dev/data/data_common.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lib/base/fd.h"

namespace gxp {

// Read by pread, not mapped: a file that is cut while it is in use is an error here, where a
// mapping would end the process (SIGBUS). Threads: const functions from any.
class TokenFile {
 public:
  // Without `keep_open` the file is opened for each read: a dataset may have thousands of files.
  // Errors: kIo missing, or no regular file; kCorrupt empty, truncated (the header promises more
  // than there is), or of a version or token width that is not known.
  explicit TokenFile(std::string path, bool keep_open = true);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t token_count() const { return token_count_; }
  // Samples are rows of the file, not windows over a stream.
  [[nodiscard]] bool has_rows() const { return kind_ == Kind::kRows; }
  // Tokens [begin, begin + count), which must have existed when the file was opened first.
  // kCorrupt: the file has been cut since; or an id is outside 0 to vocab_size - 1: names the file,
  // the position, the token and the limit. kIo: the system's reason. Cost: one pread for each 16
  // KiB.
  void read(uint64_t begin, size_t count, int vocab_size, int32_t* out) const;

 private:
  enum class Kind { kText, kShard16, kShard32, kRows };
  [[nodiscard]] Fd open() const;
  void read_header(int fd);
  void read_bytes(int fd, uint64_t at, std::span<std::byte> out) const;
  template <class Stored>
  void copy(uint64_t begin, size_t count, int vocab_size, int32_t* out) const;

  std::string path_;
  Fd fd_;                    // none: opened for each read
  uint64_t bytes_ = 0;       // when it was opened first
  uint64_t first_byte_ = 0;  // where the tokens begin
  uint64_t token_count_ = 0;
  Kind kind_ = Kind::kText;
};

}  // namespace gxp
