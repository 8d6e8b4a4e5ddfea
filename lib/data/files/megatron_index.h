// The index of Megatron's tokens: the type of the ids in the .bin file beside it, and its documents.
//
//   "MMIDIDX\0\0"; u64 version 1; u8 type; u64 sequences S; u64 D; i32 lengths[S]; i64 bytes[S],
//   where each sequence begins in the .bin file; i64 documents[D], of which document d holds the
//   sequences documents[d] to documents[d + 1] - 1; i8 modes[S] in files of several modalities
// Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py.
#pragma once

#include <cstdint>
#include <string>

#include "lib/data/files/source_file.h"
#include "lib/data/files/token_type.h"

namespace gxp {

// Threads: const functions from any.
class MegatronIndex {
 public:
  // `path` is the .idx file, or the .bin file beside it. Checks all of it: sequences follow each
  // other without gaps, and documents without sequences between them. kIo; kCorrupt: cut, of an
  // older kind or another version, of floating-point numbers, of modes other than text, or what it
  // says does not fit together. Cost: reads the index once, 20 bytes a sequence; keeps nothing of it.
  explicit MegatronIndex(const std::string& path);

  [[nodiscard]] const std::string& data_path() const { return data_path_; }  // "corpus.bin"
  [[nodiscard]] TokenType type() const { return type_; }
  [[nodiscard]] uint64_t token_count() const { return token_count_; }
  [[nodiscard]] uint64_t document_count() const { return entries_ - 1; }
  // The first token of a document, or, of document_count(), the count of tokens. Cost: opens the
  // index and reads twice. Errors: those of SourceFile.
  [[nodiscard]] uint64_t document_begin(uint64_t document) const;
  [[nodiscard]] const std::string& hash() const { return hash_; }  // hash_hex() of the index

 private:
  void read_header(const SourceFile& file);
  void check_sequences(const SourceFile& file);
  void check_documents(const SourceFile& file) const;
  [[noreturn]] void refuse(std::string_view why) const;

  std::string path_, data_path_;
  uint64_t bytes_ = 0;  // of the index
  TokenType type_;
  uint64_t sequences_ = 0;
  uint64_t entries_ = 0;  // of the list of documents: one more than there are
  uint64_t token_count_ = 0;
  std::string hash_;
};

}  // namespace gxp
