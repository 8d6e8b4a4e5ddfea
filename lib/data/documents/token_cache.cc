#include "lib/data/documents/token_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"

namespace gxp {
namespace {

constexpr size_t kBlockTokens = 65536;
constexpr size_t kGroupDocuments = 512;  // whose ends are 4 KiB
constexpr size_t kHashDigits = 32;
constexpr std::array<char, 8> kCacheMagic = {'g', 'x', 'p', 't', 'o', 'k', '\n', '\0'};
constexpr uint32_t kCacheVersion = 1;

struct CacheHeader {
  std::array<char, 8> magic = kCacheMagic;
  uint32_t version = kCacheVersion;
  uint32_t token_bytes = 0;
  uint64_t token_count = 0;
  uint64_t document_count = 0;
  int32_t vocabulary_end = 0;
  uint32_t has_trained = 0;
  std::array<char, kHashDigits> key = {};
  std::array<char, kHashDigits> body_hash = {};
  uint64_t own_hash = 0;  // hash64() of all before it
};
static_assert(sizeof(CacheHeader) == 112);  // without padding

uint64_t own_hash_of(const CacheHeader& header) {
  return hash64(std::as_bytes(std::span(&header, 1)).first(offsetof(CacheHeader, own_hash)));
}

unsigned bytes_of_ids(int32_t vocabulary_end) { return vocabulary_end <= 1 << 16 ? 2 : 4; }

size_t bit_bytes(size_t tokens) { return (tokens + 7) / 8; }

template <class T>
std::span<std::byte> writable(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

}  // namespace

std::string token_cache_key(std::span<const std::string> parts) {
  Hasher hasher;
  for (const std::string& part : parts) {
    const uint64_t length = part.size();
    hasher.update(std::as_bytes(std::span(&length, 1)));
    hasher.update(std::as_bytes(std::span(part)));
  }
  return hasher.hex();
}

TokenCacheWriter::TokenCacheWriter(std::string path, TokenCacheForm form)
    : path_(std::move(path)), partial_(path_ + ".XXXXXX"), form_(std::move(form)) {
  GXP_ASSERT(form_.key.size() == kHashDigits && form_.vocabulary_end > 0);
  const std::string directory = std::filesystem::path(path_).parent_path().string();
  std::error_code error;
  if (!directory.empty()) std::filesystem::create_directories(directory, error);
  if (error) fail(ErrorKind::kIo, "make directory {}: {}", directory, error.message());
  fd_ = Fd(int(check_sys(::mkostemp(partial_.data(), O_CLOEXEC),
                         fmt::format("write token cache {}", path_))));
  const CacheHeader none = {};
  const auto bytes = std::as_bytes(std::span(&none, 1));
  if (::write(fd_.get(), bytes.data(), bytes.size()) != ssize_t(bytes.size()))
    fail(ErrorKind::kIo, "write token cache {}: {}", path_, system_text(errno));
}

TokenCacheWriter::~TokenCacheWriter() {
  if (fd_.valid()) ::unlink(partial_.c_str());
}

void TokenCacheWriter::write(std::span<const std::byte> bytes) {
  hasher_.update(bytes);
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(ErrorKind::kIo, "write token cache {}: {}", path_, system_text(errno));
    bytes = bytes.subspan(size_t(written));
  }
}

void TokenCacheWriter::add_token(int32_t id, bool is_trained) {
  GXP_ASSERT(id >= 0 && id < form_.vocabulary_end);
  const auto bytes = std::as_bytes(std::span(&id, 1)).first(bytes_of_ids(form_.vocabulary_end));
  ids_.insert(ids_.end(), bytes.begin(), bytes.end());
  const size_t at = size_t(token_count_ % kBlockTokens);
  if (form_.has_trained) {
    if (at % 8 == 0) bits_.push_back(std::byte{0});
    bits_.back() |= std::byte(unsigned{is_trained} << at % 8);
  }
  ++token_count_;
  if (at + 1 == kBlockTokens) flush_block();
}

void TokenCacheWriter::flush_block() {
  write(ids_);
  write(bits_);
  ids_.clear();
  bits_.clear();
}

void TokenCacheWriter::add(std::span<const int32_t> ids, std::span<const uint8_t> trained) {
  GXP_ASSERT(trained.size() == (form_.has_trained ? ids.size() : 0));
  for (size_t i = 0; i < ids.size(); ++i) add_token(ids[i], form_.has_trained && trained[i] != 0);
  ends_.push_back(token_count_);
}

void TokenCacheWriter::finish() {
  flush_block();
  write(std::as_bytes(std::span(ends_)));
  CacheHeader header{.token_bytes = bytes_of_ids(form_.vocabulary_end),
                     .token_count = token_count_,
                     .document_count = ends_.size(),
                     .vocabulary_end = form_.vocabulary_end,
                     .has_trained = form_.has_trained};
  form_.key.copy(header.key.data(), kHashDigits);
  hasher_.hex().copy(header.body_hash.data(), kHashDigits);
  header.own_hash = own_hash_of(header);
  const bool is_done = ::pwrite(fd_.get(), &header, sizeof header, 0) == ssize_t(sizeof header) &&
                       ::fchmod(fd_.get(), 0644) == 0 && ::fsync(fd_.get()) == 0 &&
                       std::rename(partial_.c_str(), path_.c_str()) == 0;
  if (!is_done) fail(ErrorKind::kIo, "write token cache {}: {}", path_, system_text(errno));
  fd_.reset();
}

TokenCache::TokenCache(const std::string& path, Check check) : file_(path) {
  read_header();
  Hasher hasher;
  if (check == Check::kAll) check_tokens(hasher);
  read_ends(hasher);
  if (check == Check::kAll && hasher.hex() != body_hash_) refuse("its checksum does not match");
}

void TokenCache::refuse(std::string_view why) const {
  fail(ErrorKind::kCorrupt, "read token cache {}: {}", file_.path(), why);
}

void TokenCache::read_header() {
  if (file_.bytes() < sizeof(CacheHeader)) refuse("it is cut");
  const auto header = file_.value_at<CacheHeader>(0);
  if (header.magic != kCacheMagic) refuse("it is none");
  if (header.version != kCacheVersion)
    refuse(fmt::format("version {}; version {} is known", header.version, kCacheVersion));
  if (header.own_hash != own_hash_of(header)) refuse("the checksum of its header does not match");
  form_ = {.key = std::string(header.key.data(), kHashDigits),
           .vocabulary_end = header.vocabulary_end,
           .has_trained = header.has_trained != 0};
  body_hash_.assign(header.body_hash.data(), kHashDigits);
  token_bytes_ = header.token_bytes;
  token_count_ = header.token_count;
  document_count_ = header.document_count;
  // The counts are limited first, so that no product overflows.
  const bool is_whole = form_.vocabulary_end > 0 &&
                        token_bytes_ == bytes_of_ids(form_.vocabulary_end) &&
                        token_count_ <= file_.bytes() && document_count_ <= file_.bytes() &&
                        ends_at() + document_count_ * sizeof(uint64_t) == file_.bytes();
  if (!is_whole)
    refuse(fmt::format("it declares {} tokens and {} documents, but has {} bytes", token_count_,
                       document_count_, file_.bytes()));
}

uint64_t TokenCache::block_at(uint64_t block) const {
  const size_t bits = form_.has_trained ? bit_bytes(kBlockTokens) : 0;
  return sizeof(CacheHeader) + block * (kBlockTokens * token_bytes_ + bits);
}

size_t TokenCache::tokens_in(uint64_t block) const {
  return size_t(std::min<uint64_t>(kBlockTokens, token_count_ - block * kBlockTokens));
}

uint64_t TokenCache::ends_at() const {
  const uint64_t block = token_count_ / kBlockTokens;
  const size_t tokens = tokens_in(block);
  return block_at(block) + tokens * token_bytes_ + (form_.has_trained ? bit_bytes(tokens) : 0);
}

void TokenCache::check_tokens(Hasher& hasher) const {
  std::vector<std::byte> bytes;
  std::vector<int32_t> tokens;
  for (uint64_t block = 0; block * kBlockTokens < token_count_; ++block) {
    tokens.resize(tokens_in(block));
    const uint64_t end = std::min(block_at(block + 1), ends_at());
    bytes.resize(end - block_at(block));
    file_.read(block_at(block), bytes);
    hasher.update(bytes);
    decode(std::span(bytes).first(tokens.size() * token_bytes_), tokens);
  }
}

void TokenCache::read_ends(Hasher& hasher) {
  uint64_t before = 0;
  std::vector<uint64_t> ends;
  for (uint64_t begin = 0; begin < document_count_; begin += kGroupDocuments) {
    ends.resize(std::min<uint64_t>(kGroupDocuments, document_count_ - begin));
    file_.read(ends_at() + begin * sizeof(uint64_t), writable(ends));
    hasher.update(writable(ends));
    for (const uint64_t end : ends) {
      if (end < before) refuse("a document ends before it begins");
      before = end;
    }
    group_ends_.push_back(before);
  }
  if (before != token_count_)
    refuse(fmt::format("its documents have {} tokens of {}", before, token_count_));
}

void TokenCache::decode(std::span<const std::byte> bytes, std::span<int32_t> out) const {
  for (size_t i = 0; i < out.size(); ++i) {
    uint32_t id = 0;
    std::memcpy(&id, bytes.data() + i * token_bytes_, token_bytes_);
    if (id >= uint32_t(form_.vocabulary_end))
      refuse(fmt::format("token {} is outside the vocabulary of {}", id, form_.vocabulary_end));
    out[i] = int32_t(id);
  }
}

void TokenCache::read(uint64_t begin, std::span<int32_t> out) const {
  GXP_ASSERT(begin <= token_count_ && out.size() <= token_count_ - begin);
  std::vector<std::byte> bytes;
  while (!out.empty()) {
    const uint64_t block = begin / kBlockTokens;
    const size_t at = size_t(begin % kBlockTokens);
    const size_t count = std::min(out.size(), tokens_in(block) - at);
    bytes.resize(count * token_bytes_);
    file_.read(block_at(block) + at * token_bytes_, bytes);
    decode(bytes, out.first(count));
    out = out.subspan(count);
    begin += count;
  }
}

void TokenCache::read_trained(uint64_t begin, std::span<uint8_t> out) const {
  GXP_ASSERT(form_.has_trained && begin <= token_count_ && out.size() <= token_count_ - begin);
  std::vector<std::byte> bytes;
  while (!out.empty()) {
    const uint64_t block = begin / kBlockTokens;
    const size_t at = size_t(begin % kBlockTokens);
    const size_t count = std::min(out.size(), tokens_in(block) - at);
    bytes.resize(bit_bytes(at % 8 + count));
    file_.read(block_at(block) + tokens_in(block) * token_bytes_ + at / 8, bytes);
    for (size_t i = 0; i < count; ++i) {
      const size_t bit = at % 8 + i;
      out[i] = uint8_t(bytes[bit / 8] >> bit % 8 & std::byte{1});
    }
    out = out.subspan(count);
    begin += count;
  }
}

uint64_t TokenCache::document_begin(uint64_t document) const {
  GXP_ASSERT(document <= document_count_);
  if (document == 0) return 0;
  return std::min(file_.value_at<uint64_t>(ends_at() + (document - 1) * sizeof(uint64_t)),
                  token_count_);
}

uint64_t TokenCache::document_of(uint64_t token) const {
  GXP_ASSERT(token < token_count_);
  const auto group = uint64_t(std::ranges::upper_bound(group_ends_, token) - group_ends_.begin());
  const uint64_t first = group * kGroupDocuments;
  std::vector<uint64_t> ends(std::min<uint64_t>(kGroupDocuments, document_count_ - first));
  file_.read(ends_at() + first * sizeof(uint64_t), writable(ends));
  // At most the last of them, though the file may have been changed since.
  const auto found = uint64_t(std::ranges::upper_bound(ends, token) - ends.begin());
  return first + std::min<uint64_t>(found, ends.size() - 1);
}

TokenCache open_or_write_token_cache(const std::string& path, const TokenCacheForm& form,
                                     const std::function<void(TokenCacheWriter&)>& write,
                                     TokenCache::Check check) {
  if (::access(path.c_str(), F_OK) == 0) {
    try {
      TokenCache cache(path, check);
      if (cache.form() == form) return cache;
      log_info("data: token cache {} is of another text, tokenizer or setting; it is written anew",
               path);
    } catch (const Error& error) {
      log_warn("data: {}; it is written anew", error.what());
    }
  }
  TokenCacheWriter writer(path, form);
  write(writer);
  writer.finish();
  return TokenCache(path, TokenCache::Check::kShape);
}

}  // namespace gxp
