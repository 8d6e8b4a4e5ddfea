// One file of tokens. The kinds are recognised by content and name (file_kind.h):
//   text      one token a byte (tokenizer "byte", ids 0 to 255)
//   llm.c     .bin shards: 1,024 bytes of header (256 little-endian int32: magic, version, count),
//             then tokens; magic 20240520 version 1: uint16; magic 20240801 version 7: uint32
//   rows      *.i32: little-endian int32 without a header; a row is a sample of sequence + 1 tokens
//   .npy      an array of integers of 8 to 64 bits, little-endian, row by row: of one dimension a
//             stream; of two such rows; of three, (rows, 2, length), rows with labels: first the
//             ids of a row's tokens, then a label for each, which is the token's own id, or -100
//             where the token is not to be predicted. Labels are of a signed type
//   Megatron  .bin, the ids alone, and beside it .idx, which has their type and the documents
//             (megatron_index.h); either name is the file's
//   uint16    .bin without a header, as nanoGPT writes it, only if data.format says so
// Sources: github.com/karpathy/llm.c, llmc/dataloader.h and dev/data/data_common.py; for labels
// Hugging Face's transformers, whose models shift them by one against the logits, as gxp does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lib/data/files/file_kind.h"
#include "lib/data/files/megatron_index.h"
#include "lib/data/files/source_file.h"
#include "lib/data/files/token_type.h"

namespace gxp {

struct NumpyHeader;

// The label of a token that is not to be predicted: ignore_index of PyTorch's cross_entropy().
inline constexpr int32_t kNoLabel = -100;

// Threads: const functions from any.
class TokenFile {
 public:
  // Without `keep_open` the file is opened for each read: a dataset may have thousands of files.
  // Errors: kIo missing, or no regular file; kCorrupt of no kind that is read (kind_of()), empty,
  // compressed, of another size than its header says, or of a version, a type or a shape that is not
  // known.
  explicit TokenFile(std::string path, bool keep_open = true,
                     DataFormat format = DataFormat::kAuto);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t token_count() const { return token_count_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] DataKind kind() const { return kind_; }
  // Rows have labels.
  [[nodiscard]] bool has_labels() const { return has_labels_; }
  // Samples are rows of the file, not windows over a stream.
  [[nodiscard]] bool has_rows() const { return kind_ == DataKind::kRows || row_tokens_ > 0; }
  // The tokens of a row, where the file records them; else 0.
  [[nodiscard]] uint64_t row_tokens() const { return row_tokens_; }
  // Documents, where the file records them, else nothing.
  [[nodiscard]] const std::optional<MegatronIndex>& index() const { return index_; }
  // Whether it tells where documents begin: it records them, or is a stream of ids in which each
  // ends behind this token.
  [[nodiscard]] bool parts_documents(const std::optional<int32_t>& end_token) const {
    return index_.has_value() || (end_token && !has_rows() && !holds_text(kind_));
  }
  // hash_hex() of at most this many blocks, spread over the file.
  [[nodiscard]] std::string hash(size_t most_blocks) const;
  // Tokens [begin, begin + count), which must have existed when the file was opened first; with
  // has_labels() they must be of one row. kCorrupt: the file has been cut since; or an id is outside
  // 0 to vocab_size - 1: names the file, the position, the token and the limit. kIo: the system's
  // reason. Cost: one pread for each 16 KiB.
  void read(uint64_t begin, size_t count, int vocab_size, int32_t* out) const;
  // The labels of a row whose `tokens` have been read; only with has_labels(). kCorrupt, besides as
  // above: a label is neither its token nor kNoLabel, as where labels were shifted already.
  void read_labels(uint64_t row, std::span<const int32_t> tokens, int32_t* out) const;
  // How many labels of a row, without the first, are not kNoLabel; only with has_labels().
  [[nodiscard]] uint64_t count_targets(uint64_t row) const;

 private:
  // The file itself, or `own`, opened for it.
  const SourceFile& open(std::optional<SourceFile>& own) const;
  void read_header(const SourceFile& file, DataFormat format);
  void read_rows();
  void read_bare(const SourceFile& file);
  void read_shard(const SourceFile& file);
  void read_megatron();
  void read_numpy(const SourceFile& file);
  void check_numpy(const NumpyHeader& header) const;
  // Calls act(i, value) for elements [begin + i] of the array, i < count.
  template <class Act>
  void for_elements(uint64_t begin, size_t count, const Act& act) const;
  // "position 7", or "position 3 of row 1" where the file records its rows.
  [[nodiscard]] std::string place_of(uint64_t token) const;

  std::string path_;
  std::optional<SourceFile> file_;  // none: opened for each read
  uint64_t bytes_ = 0;              // when it was opened first
  uint64_t first_byte_ = 0;         // where the tokens begin
  uint64_t token_count_ = 0;
  uint64_t row_tokens_ = 0;
  bool has_labels_ = false;
  DataKind kind_ = DataKind::kText;
  TokenType type_;
  std::optional<MegatronIndex> index_;
};

}  // namespace gxp
