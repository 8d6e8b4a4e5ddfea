#include "lib/data/token_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace gxp {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr uint64_t kShardHeaderBytes = 1024;
constexpr int32_t kMagic16 = 20240520;
constexpr int32_t kMagic32 = 20240801;

struct ShardHeader {
  int32_t magic = 0;
  int32_t version = 0;
  uint32_t token_count = 0;  // llm.c writes an int32; shards above 2^31 tokens need the sign bit
};

}  // namespace

TokenFile::TokenFile(std::string path) : path_(std::move(path)) {
  const std::string act = fmt::format("read tokens from {}", path_);
  const Fd fd(int(check_sys(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), act)));
  struct stat status = {};
  check_sys(::fstat(fd.get(), &status), act);
  if (!S_ISREG(status.st_mode)) fail(ErrorKind::kIo, "{}: not a regular file", act);
  bytes_ = uint64_t(status.st_size);
  if (bytes_ == 0) fail(ErrorKind::kCorrupt, "{}: the file is empty", act);
  void* mapping = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd.get(), 0);
  check_sys(mapping == MAP_FAILED ? -1 : 0, act);
  data_ = static_cast<const std::byte*>(mapping);
  try {
    read_header();
  } catch (...) {
    ::munmap(mapping, bytes_);
    throw;
  }
}

TokenFile::TokenFile(TokenFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_),
      first_byte_(other.first_byte_),
      token_count_(other.token_count_),
      kind_(other.kind_) {}

TokenFile::~TokenFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), bytes_);
}

void TokenFile::read_header() {
  if (path_.ends_with(".i32")) {
    kind_ = Kind::kRows;
    token_count_ = bytes_ / sizeof(int32_t);
    if (bytes_ % sizeof(int32_t) != 0)
      fail(ErrorKind::kCorrupt, "read tokens from {}: {} bytes is no whole number of int32 tokens",
           path_, bytes_);
    return;
  }
  ShardHeader header;
  std::memcpy(&header, data_, std::min<uint64_t>(bytes_, sizeof(header)));
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

// Source positions are aligned: mappings begin at pages, headers are multiples of four bytes.
template <class Stored>
void TokenFile::copy(uint64_t begin, size_t count, int vocab_size, int32_t* out) const {
  const auto* tokens = reinterpret_cast<const Stored*>(data_ + first_byte_) + begin;
  for (size_t i = 0; i < count; ++i) {
    const auto token = int64_t{tokens[i]};
    if (token < 0 || token >= vocab_size)
      fail(ErrorKind::kCorrupt,
           "read tokens from {}: token {} at position {} is outside the vocabulary of {} ids; "
           "raise model.vocab_size or correct the file",
           path_, token, begin + i, vocab_size);
    out[i] = int32_t(token);
  }
}

}  // namespace gxp
