#include "lib/data/files/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/text/joined.h"
#include "lib/data/files/numpy_header.h"

namespace gxp {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr uint64_t kShardHeaderBytes = 1024;
constexpr size_t kBufferBytes = 16384;  // 4,096 to 16,384 tokens: most samples are one read

struct ShardHeader {
  int32_t magic = 0;
  int32_t version = 0;
  uint32_t token_count = 0;  // llm.c writes an int32; shards above 2^31 tokens need the sign bit
};

constexpr uint16_t kMostUpper = 15;  // of ids of 32 bits, in vocabularies below 2^20

// Of what begins like ids of 32 bits: the upper half of each is next to nothing.
bool holds_wide_ids(std::span<const uint16_t> halves) {
  constexpr size_t kLeastIds = 64;
  bool has_lower = false;
  for (size_t i = 0; i + 1 < halves.size(); i += 2) {
    if (halves[i + 1] > kMostUpper) return false;
    has_lower |= halves[i] > kMostUpper;
  }
  return halves.size() / 2 >= kLeastIds && has_lower;
}

}  // namespace

TokenFile::TokenFile(std::string path, bool keep_open, DataFormat format) : path_(std::move(path)) {
  SourceFile file(path_);
  bytes_ = file.bytes();
  if (bytes_ == 0) fail(ErrorKind::kCorrupt, "read tokens from {}: the file is empty", path_);
  read_header(file, format);
  if (!keep_open) return;
  if (index_)
    file_.emplace(index_->data_path());
  else
    file_ = std::move(file);
}

const SourceFile& TokenFile::open(std::optional<SourceFile>& own) const {
  return file_ ? *file_ : own.emplace(index_ ? index_->data_path() : path_, bytes_);
}

void TokenFile::read_header(const SourceFile& file, DataFormat format) {
  kind_ = kind_of(
      path_, bytes_, [&](uint64_t at, std::span<std::byte> out) { file.read(at, out); }, format);
  switch (kind_) {
    case DataKind::kText:
      token_count_ = bytes_;
      return;
    case DataKind::kGzip:
    case DataKind::kZstd:
      fail(ErrorKind::kCorrupt,
           "read tokens from {}: it is compressed by {}, whose bytes are no tokens; decompress it, "
           "or set data.tokenizer to a tokenizer; gxp reads text and JSON lines in it then",
           path_, to_string(kind_));
    case DataKind::kRows:
      return read_rows();
    case DataKind::kShard16:
    case DataKind::kShard32:
      return read_shard(file);
    case DataKind::kMegatron:
      return read_megatron();
    case DataKind::kUint16:
      return read_bare(file);
    case DataKind::kNumpy:
      return read_numpy(file);
  }
}

void TokenFile::read_rows() {
  type_ = {4, true};
  token_count_ = bytes_ / sizeof(int32_t);
  if (bytes_ % sizeof(int32_t) != 0)
    fail(ErrorKind::kCorrupt,
         "read tokens from {}: {} bytes are not a multiple of 4, the size of an int32 token", path_,
         bytes_);
}

void TokenFile::read_bare(const SourceFile& file) {
  type_ = {2, false};
  token_count_ = bytes_ / sizeof(uint16_t);
  if (bytes_ % sizeof(uint16_t) != 0)
    fail(ErrorKind::kCorrupt,
         "read tokens from {}: an odd number of bytes, {}; with data.format = \"nanogpt\" it holds "
         "ids of two bytes each",
         path_, bytes_);
  std::array<uint16_t, 2048> begin = {};
  const auto head = std::span(begin).first(std::min<uint64_t>(token_count_, begin.size()));
  file.read(0, std::as_writable_bytes(head));
  if (bytes_ % sizeof(uint32_t) == 0 && holds_wide_ids(head))
    fail(ErrorKind::kCorrupt,
         "read tokens from {}: every second of its uint16 ids is {} at most, as if they had 32 "
         "bits; write such ids as a .npy array: python3 -c \"import numpy; "
         "numpy.save('ids.npy', numpy.fromfile('{}', 'u4'))\"",
         path_, kMostUpper, path_);
}

void TokenFile::read_megatron() {
  index_.emplace(path_);
  type_ = index_->type();
  token_count_ = index_->token_count();
  bytes_ = SourceFile(index_->data_path()).bytes();
  if (const uint64_t needed = token_count_ * type_.bytes; bytes_ != needed)
    fail(ErrorKind::kCorrupt,
         "read tokens from {}: {} than its index says: {} tokens in {} bytes, the file has {}",
         index_->data_path(), bytes_ < needed ? "shorter" : "longer", token_count_, needed, bytes_);
  if (token_count_ == 0) fail(ErrorKind::kCorrupt, "read tokens from {}: no tokens", path_);
}

void TokenFile::read_shard(const SourceFile& file) {
  const bool is_narrow = kind_ == DataKind::kShard16;
  type_ = {is_narrow ? 2U : 4U, false};
  const int known_version = is_narrow ? 1 : 7;
  if (bytes_ < kShardHeaderBytes)
    fail(ErrorKind::kCorrupt,
         "read tokens from {}: truncated: {} bytes, but the header of a token shard alone has {}",
         path_, bytes_, kShardHeaderBytes);
  const auto header = file.value_at<ShardHeader>(0);
  if (header.version != known_version)
    fail(ErrorKind::kCorrupt,
         "read tokens from {}: version {} of token shards with magic {} is not supported; version "
         "{} is",
         path_, header.version, header.magic, known_version);
  first_byte_ = kShardHeaderBytes;
  token_count_ = header.token_count;
  const uint64_t needed = kShardHeaderBytes + token_count_ * type_.bytes;
  if (bytes_ != needed)
    fail(ErrorKind::kCorrupt,
         "read tokens from {}: {}: the header declares {} tokens in {} bytes, the file has {}",
         path_, bytes_ < needed ? "truncated" : "too long", token_count_, needed, bytes_);
}

void TokenFile::read_numpy(const SourceFile& file) {
  struct Type {
    std::string_view name;
    TokenType type;
  };
  constexpr std::array kTypes = {Type{"|u1", {1, false}}, Type{"|i1", {1, true}},
                                 Type{"<u2", {2, false}}, Type{"<i2", {2, true}},
                                 Type{"<u4", {4, false}}, Type{"<i4", {4, true}},
                                 Type{"<u8", {8, false}}, Type{"<i8", {8, true}}};
  std::string head(std::min(bytes_, kMaxNumpyHeader), '\0');
  file.read(0, std::as_writable_bytes(std::span(head)));
  const NumpyHeader header =
      parse_numpy_header(head, "read tokens from " + path_ + ": its .npy header");
  const auto* const known = std::ranges::find(kTypes, header.type, &Type::name);
  if (known == kTypes.end())
    fail(ErrorKind::kCorrupt,
         "read tokens from {}: an array of type '{}'{}; tokens are little-endian integers of 8 to "
         "64 bits",
         path_, header.type, header.type == "|O" ? ", objects of Python in a pickle" : "");
  type_ = known->type;
  first_byte_ = header.bytes;
  has_labels_ = header.shape.size() == 3;
  row_tokens_ = header.shape.size() > 1 ? header.shape.back() : 0;
  token_count_ = (bytes_ - first_byte_) / type_.bytes / (has_labels_ ? 2 : 1);
  check_numpy(header);
  if (token_count_ == 0) fail(ErrorKind::kCorrupt, "read tokens from {}: no tokens", path_);
}

void TokenFile::check_numpy(const NumpyHeader& header) const {
  const std::vector<uint64_t>& shape = header.shape;
  const size_t dimensions = shape.size();
  if (dimensions < 1 || dimensions > 3 || (dimensions > 1 && header.columns_first) ||
      (has_labels_ && shape[1] != 2))
    fail(ErrorKind::kCorrupt,
         "read tokens from {}: an array of {} dimensions, ({}){}; expected one dimension (a stream "
         "of tokens), two (rows), or three (rows, 2, length): each row's ids and their labels",
         path_, dimensions, joined(shape, ", "),
         header.columns_first ? ", in column-major order" : "");
  if (has_labels_ && !type_.is_signed)
    fail(ErrorKind::kCorrupt,
         "read tokens from {}: labels of type '{}', which cannot be {}; save ids and labels as "
         "int32 or int64",
         path_, header.type, kNoLabel);
  // Divided, not multiplied: the header may tell any sizes.
  const uint64_t each = type_.bytes * (has_labels_ ? 2U : 1U);
  const uint64_t rows = row_tokens_ > 0 ? token_count_ / row_tokens_ : token_count_;
  const bool is_whole = (bytes_ - first_byte_) % each == 0 && rows == shape[0] &&
                        (row_tokens_ == 0 || token_count_ % row_tokens_ == 0) &&
                        (dimensions == 1 || row_tokens_ > 0);
  if (!is_whole)
    fail(ErrorKind::kCorrupt,
         "read tokens from {}: its .npy header declares ({}) elements of {} bytes, but {} bytes "
         "follow",
         path_, joined(shape, ", "), type_.bytes, bytes_ - first_byte_);
}

std::string TokenFile::hash(size_t most_blocks) const {
  std::optional<SourceFile> own;
  const SourceFile& file = open(own);
  Hasher hasher;
  if (index_) hasher.update(std::as_bytes(std::span(index_->hash())));
  for_each_block(
      bytes_, most_blocks, [&](uint64_t at, std::span<std::byte> out) { file.read(at, out); },
      [&](std::span<const std::byte> block) { hasher.update(block); });
  return hasher.hex();
}

template <class Act>
void TokenFile::for_elements(uint64_t begin, size_t count, const Act& act) const {
  std::optional<SourceFile> own;
  const SourceFile& file = open(own);
  const auto [bytes, is_signed] = type_;
  // An element is loaded as 8 bytes and masked: shifts by a variable would take twice as long.
  std::array<std::byte, kBufferBytes + sizeof(uint64_t)> buffer;
  const uint64_t mask = ~uint64_t{0} >> 8 * (sizeof(uint64_t) - bytes);
  const uint64_t sign = is_signed ? mask / 2 + 1 : 0;
  for (size_t done = 0; done < count;) {
    const size_t piece = std::min(kBufferBytes / bytes, count - done);
    file.read(first_byte_ + (begin + done) * bytes, std::span(buffer).first(piece * bytes));
    for (size_t i = 0; i < piece; ++i, ++done) {
      uint64_t bits;
      std::memcpy(&bits, buffer.data() + i * bytes, sizeof bits);
      act(done, int64_t(((bits & mask) ^ sign) - sign));  // sign-extended
    }
  }
}

std::string TokenFile::place_of(uint64_t token) const {
  if (row_tokens_ == 0) return fmt::format("position {}", token);
  return fmt::format("position {} of row {}", token % row_tokens_, token / row_tokens_);
}

void TokenFile::read(uint64_t begin, size_t count, int vocab_size, int32_t* out) const {
  GXP_ASSERT(begin <= token_count_ && count <= token_count_ - begin);
  // In a file with labels, r rows of ids and r of labels precede the ids of row r.
  const uint64_t behind = has_labels_ ? begin / row_tokens_ * row_tokens_ : 0;
  for_elements(behind + begin, count, [&](size_t i, int64_t token) {
    if (token < 0)
      fail(ErrorKind::kCorrupt,
           "read tokens from {}: token {} at {} is negative; labels (-100: not trained) "
           "belong behind the ids, in an array (rows, 2, length)",
           path_, token, place_of(begin + i));
    if (token >= vocab_size)
      fail(ErrorKind::kCorrupt,
           "read tokens from {}: token {} at {} is outside the vocabulary of {} ids; raise "
           "model.vocab_size or correct the file",
           path_, token, place_of(begin + i), vocab_size);
    out[i] = int32_t(token);
  });
}

void TokenFile::read_labels(uint64_t row, std::span<const int32_t> tokens, int32_t* out) const {
  GXP_ASSERT(has_labels_ && tokens.size() == row_tokens_ && row < token_count_ / row_tokens_);
  for_elements((2 * row + 1) * row_tokens_, row_tokens_, [&](size_t i, int64_t label) {
    if (label != tokens[i] && label != kNoLabel)
      fail(ErrorKind::kCorrupt,
           "read tokens from {}: label {} at {}, where the token is {}; a label is the id of the "
           "token at its own position, without a shift, or {} where that token is not to be "
           "predicted",
           path_, label, place_of(row * row_tokens_ + i), tokens[i], kNoLabel);
    out[i] = int32_t(label);
  });
}

uint64_t TokenFile::count_targets(uint64_t row) const {
  GXP_ASSERT(has_labels_ && row < token_count_ / row_tokens_);
  uint64_t targets = 0;
  for_elements((2 * row + 1) * row_tokens_ + 1, row_tokens_ - 1,
               [&](size_t /*i*/, int64_t label) { targets += uint64_t(label != kNoLabel); });
  return targets;
}

}  // namespace gxp
