// Which kind of data a file is. The content decides, or the name if the content is ambiguous. A
// file that neither identifies is not read, since as text any bytes would be tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lib/config/data_config.h"

namespace gxp {

// kGzip and kZstd: compressed text. Text may be JSON lines, which lib/data/documents tells.
enum class DataKind {
  kText,
  kShard16,
  kShard32,
  kRows,
  kNumpy,
  kMegatron,
  kUint16,
  kGzip,
  kZstd,
};

// "text", "llm.c shard of 16 bits", ".i32 rows", ".npy".
std::string_view to_string(DataKind kind);

// Whether a file of this kind holds text, which a tokenizer makes tokens of.
constexpr bool holds_text(DataKind kind) {
  return kind == DataKind::kText || kind == DataKind::kGzip || kind == DataKind::kZstd;
}

// Fills the span with the file's bytes from an offset on; the caller asks for existing bytes only.
using ReadBytes = std::function<void(uint64_t begin, std::span<std::byte> out)>;

// Blocks at even distances in a file, including its first and last bytes: a sample of the file.
inline constexpr uint64_t kBlockBytes = 4096;
void for_each_block(uint64_t bytes, size_t most_blocks, const ReadBytes& read,
                    const std::function<void(std::span<const std::byte>)>& act);

// kCorrupt, naming the file, what it is instead, and the command that converts it: compressed by
// something else, an archive, a table (Parquet, Arrow, named .csv), weights (safetensors, GGUF), a
// pickle, UTF-16, token ids without a header unless `format` asks for them, or bytes that are no
// text. Text has no byte 0, and of the 256 KiB looked at less than one in 100 is another control
// byte; which encoding it has does not matter.
DataKind kind_of(const std::string& path, uint64_t bytes, const ReadBytes& read,
                 DataFormat format = DataFormat::kAuto);
// The same of the file at `path`; besides, kIo, and kCorrupt if it is empty.
DataKind kind_of(const std::string& path, DataFormat format = DataFormat::kAuto);

// For what a compressed file holds, which begins with `head` (kHeadBytes of it, or all): kCorrupt
// unless it is text.
inline constexpr size_t kHeadBytes = size_t{1} << 18;
void require_packed_text(const std::string& path, std::string_view head, DataFormat format);

// The path's end in lower case, without .gz or .zst: "corpus.jsonl" of "Corpus.jsonl.gz".
std::string unpacked_name(const std::string& path);

}  // namespace gxp
