// What a tokenizer has made of a file of text or chats, kept for later runs: its token ids, where
// its documents end, and of chats which tokens are trained.
//
// The file, little-endian: a header of 112 bytes (token_cache.cc); the tokens in blocks of 65,536,
// each id of two bytes if the vocabulary has at most 65,536, else of four, and behind the ids of a
// block, if the file has them, a bit for each that says whether it is trained, the lowest of a byte
// first; then for each document, in 64 bits, how many tokens there are up to its end. Only the last
// block is shorter. Nothing follows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/fd.h"
#include "lib/base/hash.h"
#include "lib/data/files/source_file.h"

namespace gxp {

// What all of a cache's content depends on.
struct TokenCacheForm {
  std::string key;             // of token_cache_key(): 32 hexadecimal digits
  int32_t vocabulary_end = 0;  // the largest id + 1
  bool has_trained = false;    // chats
  friend bool operator==(const TokenCacheForm&, const TokenCacheForm&) = default;
};

// A hash of parts that tell two caches apart: the content_hash() of the source, the tokenizer's
// digest, the settings that decide what a document is. ("ab", "c") is not ("a", "bc").
std::string token_cache_key(std::span<const std::string> parts);

// Writes a new file beside `path` and puts it there when it is complete, so that nobody ever reads a
// part of one, and two processes may write it at a time. Threads: one at a time. Cost: memory of 8
// bytes a document. Errors: kIo, naming the path and the system's reason.
class TokenCacheWriter {
 public:
  // Makes the directory, if there is none.
  TokenCacheWriter(std::string path, TokenCacheForm form);
  TokenCacheWriter(const TokenCacheWriter&) = delete;
  TokenCacheWriter& operator=(const TokenCacheWriter&) = delete;
  ~TokenCacheWriter();  // without finish(): nothing is left

  // Adds a document. Ids are below form.vocabulary_end; `trained` is 0 or 1 for each of them, or
  // empty where the form has none.
  void add(std::span<const int32_t> ids, std::span<const uint8_t> trained = {});
  // Makes the content durable and moves it to `path`. The last call.
  void finish();
  [[nodiscard]] uint64_t token_count() const { return token_count_; }  // so far

 private:
  void add_token(int32_t id, bool is_trained);
  void flush_block();
  void write(std::span<const std::byte> bytes);

  std::string path_, partial_;
  TokenCacheForm form_;
  Fd fd_;
  Hasher hasher_;
  std::vector<std::byte> ids_, bits_;  // of the block
  uint64_t token_count_ = 0;
  std::vector<uint64_t> ends_;
};

// Threads: const functions from any.
class TokenCache {
 public:
  // What of the file is checked when it is opened: all of it, in one pass; or, where another process
  // on this host has checked it, all but what reads of tokens check again: their ids.
  enum class Check { kAll, kShape };
  // kIo: missing, or not readable; kCorrupt: not such a file, of another version, cut, or changed
  // (every byte is under a checksum).
  explicit TokenCache(const std::string& path, Check check = Check::kAll);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const TokenCacheForm& form() const { return form_; }
  [[nodiscard]] uint64_t token_count() const { return token_count_; }
  [[nodiscard]] uint64_t document_count() const { return document_count_; }
  // Tokens [begin, begin + out.size()), which must exist. kCorrupt: an id is not below
  // vocabulary_end, or the file has been cut; kIo. Cost: a pread for each block.
  void read(uint64_t begin, std::span<int32_t> out) const;
  // The same of what is trained, 0 or 1; only if the form has that.
  void read_trained(uint64_t begin, std::span<uint8_t> out) const;
  // The first token of a document; of document_count(), token_count(). Cost: a pread.
  [[nodiscard]] uint64_t document_begin(uint64_t document) const;
  // The document of a token < token_count(). Cost: a pread of up to 4 KiB.
  [[nodiscard]] uint64_t document_of(uint64_t token) const;

 private:
  void read_header();
  void check_tokens(Hasher& hasher) const;
  void read_ends(Hasher& hasher);
  [[nodiscard]] uint64_t block_at(uint64_t block) const;  // its first byte
  [[nodiscard]] size_t tokens_in(uint64_t block) const;
  [[nodiscard]] uint64_t ends_at() const;  // the first byte of the documents' ends
  void decode(std::span<const std::byte> bytes, std::span<int32_t> out) const;
  [[noreturn]] void refuse(std::string_view why) const;

  SourceFile file_;
  TokenCacheForm form_;
  std::string body_hash_;
  unsigned token_bytes_ = 4;
  uint64_t token_count_ = 0;
  uint64_t document_count_ = 0;
  std::vector<uint64_t> group_ends_;  // the last end of each group of documents
};

// The cache at `path`; written by `write`, which adds all documents, if there is none. One that is
// broken or of another form is written anew, and a line of the log says so. Errors: those of `write`
// and of the two classes.
TokenCache open_or_write_token_cache(const std::string& path, const TokenCacheForm& form,
                                     const std::function<void(TokenCacheWriter&)>& write,
                                     TokenCache::Check check = TokenCache::Check::kAll);

}  // namespace gxp
