#include "lib/data/files/megatron_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <vector>

#include "lib/base/error.h"

namespace gxp {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "MMIDIDX\0\0"sv;
constexpr std::string_view kOldMagic = "TNTIDX\0\0"sv;
constexpr uint64_t kVersionAt = kMagic.size();
constexpr uint64_t kTypeAt = kVersionAt + 8;
constexpr uint64_t kCountsAt = kTypeAt + 1;
constexpr uint64_t kHeaderBytes = kCountsAt + 2 * 8;
constexpr size_t kPiece = size_t{1} << 16;  // elements that are read at once

std::string named(const std::string& path, const char* extension) {
  return std::filesystem::path(path).replace_extension(extension).string();
}

// Calls act(i, value) for all elements of an array of the file.
template <class T, class Act>
void for_each_element(const SourceFile& file, uint64_t at, uint64_t count, const Act& act) {
  std::vector<T> buffer(std::min<uint64_t>(count, kPiece));
  for (uint64_t begin = 0; begin < count; begin += buffer.size()) {
    const auto piece = std::span(buffer).first(std::min<uint64_t>(buffer.size(), count - begin));
    file.read(at + begin * sizeof(T), std::as_writable_bytes(piece));
    for (size_t i = 0; i < piece.size(); ++i) act(begin + i, piece[i]);
  }
}

}  // namespace

MegatronIndex::MegatronIndex(const std::string& path)
    : path_(named(path, ".idx")), data_path_(named(path, ".bin")) {
  if (!path.ends_with(".bin")) path_ = path;
  const SourceFile file(path_);
  bytes_ = file.bytes();
  read_header(file);
  check_sequences(file);
  check_documents(file);
  hash_ = content_hash(path_);
}

void MegatronIndex::refuse(std::string_view why) const {
  fail(ErrorKind::kCorrupt, "read Megatron's index {}: {}", path_, why);
}

void MegatronIndex::read_header(const SourceFile& file) {
  std::string magic(std::min<uint64_t>(bytes_, kMagic.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(magic)));
  if (magic.starts_with(kOldMagic))
    refuse(
        "it is of the older kind (TNTIDX), which is not read; write the tokens anew by "
        "Megatron-LM's tools/preprocess_data.py");
  if (magic != kMagic) refuse("it does not begin with MMIDIDX");
  if (bytes_ < kHeaderBytes) refuse("it is cut");
  if (const auto version = file.value_at<uint64_t>(kVersionAt); version != 1)
    refuse(fmt::format("version {}; version 1 is known", version));
  constexpr TokenType kTypes[] = {{1, false}, {1, true},  {2, true},  {4, true},
                                  {8, true},  {0, false}, {0, false}, {2, false}};
  const auto code = file.value_at<uint8_t>(kTypeAt);
  if (code < 1 || code > std::size(kTypes)) refuse(fmt::format("type {} is not known", code));
  type_ = kTypes[code - 1];
  if (type_.bytes == 0) refuse("its tokens are floating-point numbers, which are no ids");
  sequences_ = file.value_at<uint64_t>(kCountsAt);
  entries_ = file.value_at<uint64_t>(kCountsAt + 8);
  // Divided, not multiplied: the header may tell any counts.
  const uint64_t rest = bytes_ - kHeaderBytes;
  if (sequences_ > rest / 12 || entries_ > (rest - 12 * sequences_) / 8 || entries_ == 0)
    refuse(fmt::format("it declares {} sequences and {} entries of documents, but has {} bytes",
                       sequences_, entries_, bytes_));
}

void MegatronIndex::check_sequences(const SourceFile& file) {
  const uint64_t begins_at = kHeaderBytes + 4 * sequences_;
  std::vector<int64_t> begins(std::min<uint64_t>(sequences_, kPiece));
  for_each_element<int32_t>(file, kHeaderBytes, sequences_, [&](uint64_t i, int32_t length) {
    if (i % kPiece == 0) {
      begins.resize(std::min<uint64_t>(kPiece, sequences_ - i));
      file.read(begins_at + 8 * i, std::as_writable_bytes(std::span(begins)));
    }
    if (length < 0) refuse(fmt::format("sequence {} has {} tokens", i, length));
    if (const int64_t begin = begins[i % kPiece]; begin != int64_t(token_count_ * type_.bytes))
      refuse(fmt::format("sequence {} begins at byte {} of {}, but the one before ends at {}", i,
                         begin, data_path_, token_count_ * type_.bytes));
    token_count_ += uint64_t(length);
  });
}

void MegatronIndex::check_documents(const SourceFile& file) const {
  const uint64_t documents_at = kHeaderBytes + 12 * sequences_;
  int64_t before = 0;
  for_each_element<int64_t>(file, documents_at, entries_, [&](uint64_t i, int64_t sequence) {
    if (sequence < before || sequence > int64_t(sequences_) || (i == 0 && sequence != 0))
      refuse(fmt::format("document {} begins at sequence {} of {}, the one before at {}", i,
                         sequence, sequences_, before));
    before = sequence;
  });
  if (before != int64_t(sequences_))
    refuse(fmt::format("{} sequences are in no document", sequences_ - uint64_t(before)));
  const uint64_t modes_at = documents_at + 8 * entries_;
  if (bytes_ == modes_at) return;
  if (bytes_ - modes_at != sequences_)
    refuse(fmt::format("{} bytes follow its lists", bytes_ - modes_at));
  for_each_element<int8_t>(file, modes_at, sequences_, [&](uint64_t i, int8_t mode) {
    if (mode != 0) refuse(fmt::format("sequence {} has mode {}; only text, 0, is read", i, mode));
  });
}

uint64_t MegatronIndex::document_begin(uint64_t document) const {
  GXP_ASSERT(document < entries_);
  if (document == entries_ - 1) return token_count_;
  const SourceFile file(path_, bytes_);
  const auto sequence = file.value_at<uint64_t>(kHeaderBytes + 12 * sequences_ + 8 * document);
  // The documents after the last token are empty; the file may have been changed since.
  if (sequence >= sequences_) return token_count_;
  const auto byte = file.value_at<uint64_t>(kHeaderBytes + 4 * sequences_ + 8 * sequence);
  return std::min(byte / type_.bytes, token_count_);
}

}  // namespace gxp
