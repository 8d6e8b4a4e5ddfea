// One file of tokens. The kinds are recognised by content and name (file_kind.h):
//   text      one token a byte (tokenizer "byte", ids 0 to 255)
//   llm.c     .bin shards: 1,024 bytes of header (256 little-endian int32: magic, version, count),
//             then tokens; magic 20240520 version 1: uint16; magic 20240801 version 7: uint32
//   rows      *.i32: little-endian int32 without a header; a row is a sample of sequence + 1 tokens
//   .npy      an array of integers of 8 to 64 bits, little-endian: of one dimension a stream, of
//             two, row by row, such rows
// Source: github.com/karpathy/llm.c, llmc/dataloader.h and dev/data/data_common.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lib/base/fd.h"
#include "lib/data/file_kind.h"

namespace gxp {

// Read by pread, not mapped: a file that is cut while it is in use is an error here, where a
// mapping would end the process (SIGBUS). Threads: const functions from any.
class TokenFile {
 public:
  // Without `keep_open` the file is opened for each read: a dataset may have thousands of files.
  // Errors: kIo missing, or no regular file; kCorrupt of no kind that is read (kind_of()), empty,
  // truncated (the header promises more than there is), or of a version, a type or a shape that is
  // not known.
  explicit TokenFile(std::string path, bool keep_open = true);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t token_count() const { return token_count_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] DataKind kind() const { return kind_; }
  // Samples are rows of the file, not windows over a stream.
  [[nodiscard]] bool has_rows() const { return kind_ == DataKind::kRows || row_tokens_ > 0; }
  // The tokens of a row, where the file records them; else 0.
  [[nodiscard]] uint64_t row_tokens() const { return row_tokens_; }
  // hash_hex() of at most this many blocks, spread over the file.
  [[nodiscard]] std::string hash(size_t most_blocks) const;
  // Tokens [begin, begin + count), which must have existed when the file was opened first.
  // kCorrupt: the file has been cut since; or an id is outside 0 to vocab_size - 1: names the file,
  // the position, the token and the limit. kIo: the system's reason. Cost: one pread for each 16
  // KiB.
  void read(uint64_t begin, size_t count, int vocab_size, int32_t* out) const;

 private:
  // How a token is stored.
  struct TokenType {
    unsigned bytes = 1;
    bool is_signed = false;
  };
  [[nodiscard]] Fd open() const;
  void read_header(int fd);
  void read_rows();
  void read_shard(int fd);
  void read_numpy(int fd);
  void read_bytes(int fd, uint64_t at, std::span<std::byte> out) const;

  std::string path_;
  Fd fd_;                    // none: opened for each read
  uint64_t bytes_ = 0;       // when it was opened first
  uint64_t first_byte_ = 0;  // where the tokens begin
  uint64_t token_count_ = 0;
  uint64_t row_tokens_ = 0;
  DataKind kind_ = DataKind::kText;
  TokenType type_;
};

}  // namespace gxp
