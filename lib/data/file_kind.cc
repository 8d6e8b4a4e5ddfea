#include "lib/data/file_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "lib/base/error.h"
#include "lib/base/text/ascii.h"

namespace gxp {
namespace {

using namespace std::string_view_literals;

constexpr size_t kBlocksForText = 64;
constexpr uint64_t kTextBytesPerControl = 100;

// What begins with these bytes, from `at` on.
struct Magic {
  std::string_view bytes;
  std::string_view what;
  size_t at = 0;
};

// Sources: the formats' specifications; Megatron-LM, megatron/core/datasets/indexed_dataset.py.
constexpr std::array kMagics = {
    Magic{"\x1f\x8b"sv, "compressed by gzip"},
    Magic{"\x28\xb5\x2f\xfd"sv, "compressed by zstd"},
    Magic{"\xfd\x37zXZ\0"sv, "compressed by xz"},
    Magic{"1AY&SY"sv, "compressed by bzip2", 4},
    Magic{"\x17\x72\x45\x38\x50\x90"sv, "compressed by bzip2", 4},
    Magic{"\x04\x22\x4d\x18"sv, "compressed by lz4"},
    Magic{"\x89LZO\0"sv, "compressed by lzop"},
    Magic{"\x1f\x9d"sv, "compressed by compress"},
    Magic{"PK\3\4"sv, "a zip archive, such as .npz and PyTorch's files"},
    Magic{"PK\5\6"sv, "an empty zip archive"},
    Magic{"7z\xbc\xaf\x27\x1c"sv, "a 7z archive"},
    Magic{"Rar!\x1a\x07"sv, "a rar archive"},
    Magic{"ustar"sv, "a tar archive", 257},
    Magic{"PAR1"sv, "a Parquet table"},
    Magic{"ARROW1"sv, "an Arrow table"},
    Magic{"\xff\xff\xff\xff"sv, "an Arrow stream"},
    Magic{"FEA1"sv, "a Feather table"},
    Magic{"Obj\x01"sv, "an Avro table"},
    Magic{"\x89HDF\r\n\x1a\n"sv, "an HDF5 file"},
    Magic{"SQLite format 3\0"sv, "an SQLite database"},
    Magic{"MMIDIDX\0\0"sv, "the index of Megatron's tokens"},
    Magic{"TNTIDX\0\0"sv, "the index of Megatron's (or fairseq's) tokens"},
    Magic{"GGUF"sv, "a GGUF model"},
    Magic{"{\""sv, "safetensors", 8},
    Magic{"%PDF-"sv, "a PDF document"},
    Magic{"\x7f"
          "ELF"sv,
          "a program"},
    Magic{"\xff\xfe"sv, "text in UTF-16"},
    Magic{"\xfe\xff"sv, "text in UTF-16"}};

// Names of files that are none of gxp's kinds, unless their bytes say that they are one.
constexpr std::array kNames = {".parquet"sv, ".arrow"sv,      ".feather"sv, ".gz"sv,  ".tgz"sv,
                               ".zst"sv,     ".xz"sv,         ".bz2"sv,     ".lz4"sv, ".zip"sv,
                               ".npz"sv,     ".7z"sv,         ".tar"sv,     ".pt"sv,  ".pth"sv,
                               ".pkl"sv,     ".h5"sv,         ".hdf5"sv,    ".idx"sv, ".npy"sv,
                               ".gguf"sv,    ".safetensors"sv};

// Names that people give to token ids without a header, which bytes cannot tell.
constexpr std::array kBareNames = {".bin"sv,    ".u16"sv,    ".u32"sv,
                                   ".uint16"sv, ".uint32"sv, ".ids"sv};

[[noreturn]] void refuse(const std::string& path, std::string_view what, std::string_view remedy) {
  fail(ErrorKind::kCorrupt, "read tokens from {}: it is {}; {}", path, what, remedy);
}

constexpr std::string_view kTaken =
    "gxp reads text, llm.c's .bin shards, .npy arrays of integers and .i32 rows";

bool has_magic(std::string_view head, const Magic& magic) {
  return head.size() >= magic.at && head.substr(magic.at).starts_with(magic.bytes);
}

bool is_control(std::byte byte) {
  const auto code = std::to_integer<unsigned>(byte);
  return (code < 0x20 && (code < 0x09 || code > 0x0d) && code != 0x1b) || code == 0x7f;
}

// A header of safetensors begins with its length, of which four bytes before the brace are zero. A
// word that text may begin with is followed by a control byte.
bool is_coincidence(std::string_view head, const Magic& magic) {
  if (magic.what == "safetensors") return head.substr(4, 4) != "\0\0\0\0"sv;
  const auto is_letter = [](char c) { return c >= '0' && c <= 'Z'; };
  const size_t end = magic.at + magic.bytes.size();
  if (magic.at > 0 || !std::ranges::all_of(magic.bytes, is_letter) || end == head.size())
    return false;
  return head[end] != '\0' && !is_control(std::byte(head[end]));
}

void require_text(const std::string& path, uint64_t bytes, const ReadBytes& read) {
  uint64_t seen = 0, controls = 0;
  bool has_zero = false;
  for_each_block(bytes, kBlocksForText, read, [&](std::span<const std::byte> block) {
    seen += block.size();
    controls += uint64_t(std::ranges::count_if(block, is_control));
    has_zero |= std::ranges::find(block, std::byte{0}) != block.end();
  });
  if (!has_zero && controls * kTextBytesPerControl <= seen) return;
  refuse(path, has_zero ? "not text: it has zero bytes" : "not text: it has control bytes",
         fmt::format("if it holds token ids without a header, convert it to a .npy array; {}",
                     kTaken));
}

// Of a .bin file that is no shard.
std::string describe_bare(const std::string& path) {
  std::error_code error;
  const auto index = std::filesystem::path(path).replace_extension(".idx");
  return std::filesystem::exists(index, error)
             ? fmt::format("of Megatron's tokens, with the index {}", index.filename().string())
             : "without the header of llm.c's shards, as bare token ids are (nanoGPT's train.bin)";
}

}  // namespace

std::string_view to_string(DataKind kind) {
  switch (kind) {
    case DataKind::kText:
      return "text";
    case DataKind::kShard16:
      return "llm.c shard of 16 bits";
    case DataKind::kShard32:
      return "llm.c shard of 32 bits";
    case DataKind::kRows:
      return ".i32 rows";
    case DataKind::kNumpy:
      return ".npy";
  }
  return "";
}

void for_each_block(uint64_t bytes, size_t most_blocks, const ReadBytes& read,
                    const std::function<void(std::span<const std::byte>)>& act) {
  const uint64_t all = (bytes + kBlockBytes - 1) / kBlockBytes;
  const uint64_t blocks = std::min<uint64_t>(all, most_blocks);
  std::array<std::byte, kBlockBytes> buffer;
  for (uint64_t i = 0; i < blocks; ++i) {
    // The quotient and the remainder apart: their product with i stays within 64 bits.
    const uint64_t last = all - 1, gaps = std::max<uint64_t>(blocks - 1, 1);
    const uint64_t begin = (last / gaps * i + last % gaps * i / gaps) * kBlockBytes;
    const auto block = std::span(buffer).first(std::min(kBlockBytes, bytes - begin));
    read(begin, block);
    act(block);
  }
}

DataKind kind_of(const std::string& path, uint64_t bytes, const ReadBytes& read) {
  constexpr int32_t kMagic16 = 20240520, kMagic32 = 20240801;  // llm.c
  const std::string name = lower_case(path);
  const auto is_named = [&](std::string_view end) { return name.ends_with(end); };
  if (is_named(".i32")) return DataKind::kRows;
  std::string head(std::min<uint64_t>(bytes, 512), '\0');
  read(0, std::as_writable_bytes(std::span(head)));
  int32_t number = 0;
  if (head.size() >= sizeof(number)) std::memcpy(&number, head.data(), sizeof(number));
  if (number == kMagic16) return DataKind::kShard16;
  if (number == kMagic32) return DataKind::kShard32;
  if (head.starts_with("\x93NUMPY"sv)) return DataKind::kNumpy;
  for (const Magic& magic : kMagics)
    if (has_magic(head, magic) && !is_coincidence(head, magic)) refuse(path, magic.what, kTaken);
  if (const auto* const end = std::ranges::find_if(kNames, is_named); end != kNames.end())
    refuse(path, fmt::format("named {}, but its contents are not such a file", *end), kTaken);
  if (std::ranges::any_of(kBareNames, is_named))
    refuse(path, fmt::format("a file {}", describe_bare(path)),
           fmt::format("write the ids as a .npy array of uint16 or int32, or as such a shard; {}",
                       kTaken));
  require_text(path, bytes, read);
  return DataKind::kText;
}

}  // namespace gxp
