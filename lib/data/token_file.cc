#include "lib/data/token_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/text/text_file.h"

namespace gxp {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr uint64_t kShardHeaderBytes = 1024;
constexpr size_t kBufferBytes = 16384;  // 4,096 to 16,384 tokens: most samples are one read
constexpr int32_t kMagic16 = 20240520;
constexpr int32_t kMagic32 = 20240801;

struct ShardHeader {
  int32_t magic = 0;
  int32_t version = 0;
  uint32_t token_count = 0;  // llm.c writes an int32; shards above 2^31 tokens need the sign bit
};

}  // namespace

TokenFile::TokenFile(std::string path, bool keep_open) : path_(std::move(path)) {
  Fd fd = open();
  struct stat status = {};
  check_sys(::fstat(fd.get(), &status), fmt::format("read tokens from {}", path_));
  bytes_ = uint64_t(status.st_size);
  if (bytes_ == 0) fail(ErrorKind::kCorrupt, "read tokens from {}: the file is empty", path_);
  read_header(fd.get());
  if (keep_open) fd_ = std::move(fd);
}

Fd TokenFile::open() const {
  return open_regular_file(path_, fmt::format("read tokens from {}", path_));
}

void TokenFile::read_header(int fd) {
  if (path_.ends_with(".i32")) {
    kind_ = Kind::kRows;
    token_count_ = bytes_ / sizeof(int32_t);
    if (bytes_ % sizeof(int32_t) != 0)
      fail(ErrorKind::kCorrupt, "read tokens from {}: {} bytes is no whole number of int32 tokens",
           path_, bytes_);
    return;
  }
  ShardHeader header;
  read_bytes(fd, 0,
             std::as_writable_bytes(std::span(&header, 1))
                 .first(size_t(std::min<uint64_t>(bytes_, sizeof(header)))));
  if (header.magic != kMagic16 && header.magic != kMagic32) {
    token_count_ = bytes_;
    return;
  }
  kind_ = header.magic == kMagic16 ? Kind::kShard16 : Kind::kShard32;
  const int known_version = kind_ == Kind::kShard16 ? 1 : 7;
  if (bytes_ < kShardHeaderBytes)
    fail(ErrorKind::kCorrupt,
         "read tokens from {}: truncated: {} bytes, but the header of a token shard alone has {}",
         path_, bytes_, kShardHeaderBytes);
  if (header.version != known_version)
    fail(
        ErrorKind::kCorrupt,
        "read tokens from {}: version {} of token shards with magic {} is not known; version {} is",
        path_, header.version, header.magic, known_version);
  first_byte_ = kShardHeaderBytes;
  token_count_ = header.token_count;
  const uint64_t needed = kShardHeaderBytes + token_count_ * (kind_ == Kind::kShard16 ? 2 : 4);
  if (bytes_ < needed)
    fail(ErrorKind::kCorrupt,
         "read tokens from {}: truncated: the header promises {} tokens in {} bytes, the file has "
         "{}",
         path_, token_count_, needed, bytes_);
}

void TokenFile::read(uint64_t begin, size_t count, int vocab_size, int32_t* out) const {
  GXP_ASSERT(begin <= token_count_ && count <= token_count_ - begin);
  switch (kind_) {
    case Kind::kText:
      return copy<uint8_t>(begin, count, vocab_size, out);
    case Kind::kShard16:
      return copy<uint16_t>(begin, count, vocab_size, out);
    case Kind::kShard32:
      return copy<uint32_t>(begin, count, vocab_size, out);
    case Kind::kRows:
      return copy<int32_t>(begin, count, vocab_size, out);
  }
}

void TokenFile::read_bytes(int fd, uint64_t at, std::span<std::byte> out) const {
  for (size_t done = 0; done < out.size();) {
    const ssize_t got = ::pread(fd, out.data() + done, out.size() - done, off_t(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(ErrorKind::kIo, "read tokens from {}: {}", path_, system_text(errno));
    if (got == 0)
      fail(
          ErrorKind::kCorrupt,
          "read tokens from {}: it ends at byte {}, and had {} when it was opened; do not change a "
          "file that a run reads",
          path_, at + done, bytes_);
    done += size_t(got);
  }
}

template <class Stored>
void TokenFile::copy(uint64_t begin, size_t count, int vocab_size, int32_t* out) const {
  const Fd opened = fd_.valid() ? Fd() : open();
  const int fd = fd_.valid() ? fd_.get() : opened.get();
  std::array<Stored, kBufferBytes / sizeof(Stored)> buffer;
  for (size_t done = 0; done < count; done += buffer.size()) {
    const auto tokens = std::span(buffer).first(std::min(buffer.size(), count - done));
    read_bytes(fd, first_byte_ + (begin + done) * sizeof(Stored), std::as_writable_bytes(tokens));
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto token = int64_t{tokens[i]};
      if (token < 0 || token >= vocab_size)
        fail(ErrorKind::kCorrupt,
             "read tokens from {}: token {} at position {} is outside the vocabulary of {} ids; "
             "raise model.vocab_size or correct the file",
             path_, token, begin + done + i, vocab_size);
      out[done + i] = int32_t(token);
    }
  }
}

}  // namespace gxp
