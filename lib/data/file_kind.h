// Which kind of data a file is. The content decides, or the name if the content is ambiguous. A
// file that neither identifies is not read, since as text any bytes would be tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace gxp {

enum class DataKind { kText, kShard16, kShard32, kRows, kNumpy };

// "text", "llm.c shard of 16 bits", ".i32 rows", ".npy".
std::string_view to_string(DataKind kind);

// Fills the span with the file's bytes from an offset on; the caller asks for existing bytes only.
using ReadBytes = std::function<void(uint64_t begin, std::span<std::byte> out)>;

// Blocks at even distances in a file, including its first and last bytes: a sample of the file.
inline constexpr uint64_t kBlockBytes = 4096;
void for_each_block(uint64_t bytes, size_t most_blocks, const ReadBytes& read,
                    const std::function<void(std::span<const std::byte>)>& act);

// kCorrupt, naming the file and what it is instead: compressed, an archive, a table (Parquet,
// Arrow), weights (safetensors, GGUF), Megatron's tokens or their index, UTF-16, token ids without
// a header, or bytes that are no text. Text has no byte 0, and of the 256 KiB looked at less than
// one in 100 is another control byte; which encoding it has does not matter.
DataKind kind_of(const std::string& path, uint64_t bytes, const ReadBytes& read);

}  // namespace gxp
