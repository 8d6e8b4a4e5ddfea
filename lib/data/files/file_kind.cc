#include "lib/data/files/file_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/text/ascii.h"
#include "lib/data/files/source_file.h"

namespace gxp {
namespace {

using namespace std::string_view_literals;

constexpr size_t kBlocksForText = 64;
constexpr uint64_t kTextBytesPerControl = 100;

// What begins with these bytes, from `at` on, and how it is converted: a command, with the path for
// {0}.
struct Magic {
  std::string_view bytes;
  std::string_view what;
  std::string_view convert = "";
  size_t at = 0;
};

#define GXP_TO_JSONL "to_json('data.jsonl', orient='records', lines=True)"
constexpr std::string_view kFromArrow =
    "python3 -c \"import pandas; pandas.read_feather('{0}')." GXP_TO_JSONL "\"";
constexpr std::string_view kFromUtf16 = "iconv -f UTF-16 -t UTF-8 {0} > data.txt";

// Sources: the formats' specifications; Megatron-LM, megatron/core/datasets/indexed_dataset.py.
constexpr std::array kMagics = {
    Magic{"\xfd\x37zXZ\0"sv, "compressed by xz", "xz -dk {0}"},
    Magic{"1AY&SY"sv, "compressed by bzip2", "bunzip2 -k {0}", 4},
    Magic{"\x17\x72\x45\x38\x50\x90"sv, "compressed by bzip2", "bunzip2 -k {0}", 4},
    Magic{"\x04\x22\x4d\x18"sv, "compressed by lz4", "lz4 -d {0} data.txt"},
    Magic{"\x89LZO\0"sv, "compressed by lzop", "lzop -d {0}"},
    Magic{"\x1f\x9d"sv, "compressed by compress", "zcat {0} > data.txt"},
    Magic{"PK\3\4"sv, "a zip archive, such as .npz and PyTorch's files", "unzip {0}"},
    Magic{"PK\5\6"sv, "an empty zip archive"},
    Magic{"7z\xbc\xaf\x27\x1c"sv, "a 7z archive", "7z x {0}"},
    Magic{"Rar!\x1a\x07"sv, "a rar archive", "unrar x {0}"},
    Magic{"ustar"sv, "a tar archive", "tar xf {0}", 257},
    Magic{"PAR1"sv, "a Parquet table",
          "python3 -c \"import pandas; pandas.read_parquet('{0}')." GXP_TO_JSONL "\""},
    Magic{"ARROW1"sv, "an Arrow table", kFromArrow},
    Magic{"\xff\xff\xff\xff"sv, "an Arrow stream",
          "python3 -c \"import pyarrow; pyarrow.ipc.open_stream(pyarrow.OSFile('{0}'))"
          ".read_pandas()." GXP_TO_JSONL "\""},
    Magic{"FEA1"sv, "a Feather table", kFromArrow},
    Magic{"Obj\x01"sv, "an Avro table"},
    Magic{"\x89HDF\r\n\x1a\n"sv, "an HDF5 file",
          "python3 -c \"import h5py, numpy; numpy.save('ids.npy', h5py.File('{0}')['NAME'][:])\""},
    Magic{"SQLite format 3\0"sv, "an SQLite database",
          "sqlite3 {0} \"select json_object('text', COLUMN) from TABLE\" > data.jsonl"},
    Magic{"TNTIDX\0\0"sv,
          "an index of the older kind (TNTIDX) of Megatron's, or fairseq's, tokens"},
    Magic{"\x80\x02"sv, "a pickle of Python's"},
    Magic{"\x80\x03"sv, "a pickle of Python's"},
    Magic{"\x80\x04"sv, "a pickle of Python's"},
    Magic{"\x80\x05"sv, "a pickle of Python's"},
    Magic{"GGUF"sv, "a GGUF model"},
    Magic{"{\""sv, "safetensors", "", 8},
    Magic{"%PDF-"sv, "a PDF document", "pdftotext {0} data.txt"},
    Magic{"\x7f"
          "ELF"sv,
          "a program"},
    Magic{"\xff\xfe\0\0"sv, "text in UTF-32", "iconv -f UTF-32 -t UTF-8 {0} > data.txt"},
    Magic{"\0\0\xfe\xff"sv, "text in UTF-32", "iconv -f UTF-32 -t UTF-8 {0} > data.txt"},
    Magic{"\xff\xfe"sv, "text in UTF-16", kFromUtf16},
    Magic{"\xfe\xff"sv, "text in UTF-16", kFromUtf16}};
#undef GXP_TO_JSONL

// Names of files that are none of gxp's kinds, unless their bytes say that they are one.
constexpr std::array kNames = {".parquet"sv, ".arrow"sv,      ".feather"sv, ".gz"sv,  ".tgz"sv,
                               ".zst"sv,     ".xz"sv,         ".bz2"sv,     ".lz4"sv, ".zip"sv,
                               ".npz"sv,     ".7z"sv,         ".tar"sv,     ".pt"sv,  ".pth"sv,
                               ".pkl"sv,     ".h5"sv,         ".hdf5"sv,    ".idx"sv, ".npy"sv,
                               ".gguf"sv,    ".safetensors"sv};

// Names that people give to token ids without a header, which bytes cannot tell.
constexpr std::array kBareNames = {".bin"sv,    ".u16"sv,    ".u32"sv,
                                   ".uint16"sv, ".uint32"sv, ".ids"sv};

// Tables of text: their columns are not understood.
constexpr std::array kTableNames = {".csv"sv, ".tsv"sv};

constexpr std::string_view kTaken =
    "gxp reads text, JSON lines, both also in gzip or zstd, llm.c's .bin shards, Megatron's .bin "
    "and .idx, .npy arrays of integers and .i32 rows";

[[noreturn]] void refuse(const std::string& path, std::string_view what, std::string_view remedy) {
  fail(ErrorKind::kCorrupt, "read tokens from {}: it is {}; {}", path, what, remedy);
}

[[noreturn]] void refuse(const std::string& path, const Magic& magic) {
  if (magic.convert.empty()) refuse(path, magic.what, kTaken);
  refuse(
      path, magic.what,
      fmt::format("{}; to convert it: {}", kTaken, fmt::format(fmt::runtime(magic.convert), path)));
}

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

// What the bytes of a text would not be.
struct Unprintable {
  uint64_t seen = 0, controls = 0;
  bool has_zero = false;

  void look_at(std::span<const std::byte> block) {
    seen += block.size();
    controls += uint64_t(std::ranges::count_if(block, is_control));
    has_zero |= std::ranges::find(block, std::byte{0}) != block.end();
  }
  void require_none(const std::string& path) const {
    if (!has_zero && controls * kTextBytesPerControl <= seen) return;
    refuse(path, has_zero ? "not text: it has zero bytes" : "not text: it has control bytes",
           fmt::format("if it holds token ids without a header, convert it to a .npy array; {}",
                       kTaken));
  }
};

void require_no_magic(const std::string& path, std::string_view head) {
  for (const Magic& magic : kMagics)
    if (has_magic(head, magic) && !is_coincidence(head, magic)) refuse(path, magic);
}

void require_no_table(const std::string& path, DataFormat format) {
  const std::string name = unpacked_name(path);
  const auto* const end = std::ranges::find_if(
      kTableNames, [&](std::string_view table) { return name.ends_with(table); });
  if (end == kTableNames.end() || format == DataFormat::kText) return;
  refuse(path, fmt::format("named {}, whose columns gxp does not understand", *end),
         fmt::format("set data.format = \"text\" to train on its text as it is, or convert it: "
                     "python3 -c \"import pandas; pandas.read_csv('{}').to_json('data.jsonl', "
                     "orient='records', lines=True)\"",
                     path));
}

constexpr int32_t kMagic16 = 20240520, kMagic32 = 20240801, kMagicEvaluation = 20240522;  // llm.c

// The first four bytes as a number.
int32_t number_in(std::string_view head) {
  int32_t number = 0;
  if (head.size() >= sizeof(number)) std::memcpy(&number, head.data(), sizeof(number));
  return number;
}

// Of a file that its first bytes identify as one that is read.
std::optional<DataKind> kind_by_magic(const std::string& path, std::string_view head) {
  const int32_t number = number_in(head);
  if (number == kMagic16) return DataKind::kShard16;
  if (number == kMagic32) return DataKind::kShard32;
  if (number == kMagicEvaluation)
    refuse(path, "an evaluation set of llm.c (HellaSwag or MMLU), no shard of tokens", kTaken);
  if (head.starts_with("\x93NUMPY"sv)) return DataKind::kNumpy;
  if (head.starts_with("MMIDIDX\0\0"sv)) return DataKind::kMegatron;
  if (head.starts_with("\x1f\x8b"sv)) return DataKind::kGzip;
  // A frame of data, or one to be skipped, with which a file may begin, too.
  const bool is_skipped = (uint32_t(number) & 0xfffffff0U) == 0x184d2a50U;
  if (head.starts_with("\x28\xb5\x2f\xfd"sv) || is_skipped) return DataKind::kZstd;
  return std::nullopt;
}

bool has_index(const std::string& path) {
  std::error_code error;
  return path.ends_with(".bin") &&
         std::filesystem::exists(std::filesystem::path(path).replace_extension(".idx"), error);
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
    case DataKind::kMegatron:
      return "Megatron's indexed tokens";
    case DataKind::kUint16:
      return "uint16 without a header";
    case DataKind::kGzip:
      return "gzip";
    case DataKind::kZstd:
      return "zstd";
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

DataKind kind_of(const std::string& path, uint64_t bytes, const ReadBytes& read,
                 DataFormat format) {
  const std::string name = lower_case(path);
  const auto is_named = [&](std::string_view end) { return name.ends_with(end); };
  if (is_named(".i32")) return DataKind::kRows;
  std::string head(std::min<uint64_t>(bytes, 512), '\0');
  read(0, std::as_writable_bytes(std::span(head)));
  const bool is_bare = std::ranges::any_of(kBareNames, is_named);
  const auto known = kind_by_magic(path, head);
  // Two bytes of ids may be gzip's by chance.
  const bool is_chance = is_bare && format == DataFormat::kNanoGpt && known == DataKind::kGzip;
  if (known && !is_chance) return *known;
  if (is_bare && has_index(path)) return DataKind::kMegatron;
  if (is_bare && format == DataFormat::kNanoGpt) return DataKind::kUint16;
  require_no_magic(path, head);
  if (const auto* const end = std::ranges::find_if(kNames, is_named); end != kNames.end())
    refuse(path, fmt::format("named {}, but its contents are not such a file", *end), kTaken);
  if (is_bare && format != DataFormat::kText)
    refuse(path,
           "a file without the header of llm.c's shards, as bare token ids are (nanoGPT's "
           "train.bin)",
           fmt::format("set data.format = \"nanogpt\" if it holds uint16 ids, or write the ids as "
                       "a .npy array of uint16 or int32; {}",
                       kTaken));
  require_no_table(path, format);
  Unprintable unprintable;
  for_each_block(bytes, kBlocksForText, read,
                 [&](std::span<const std::byte> block) { unprintable.look_at(block); });
  unprintable.require_none(path);
  return DataKind::kText;
}

DataKind kind_of(const std::string& path, DataFormat format) {
  const SourceFile file(path);
  if (file.bytes() == 0) fail(ErrorKind::kCorrupt, "read data from {}: the file is empty", path);
  return kind_of(
      path, file.bytes(), [&](uint64_t at, std::span<std::byte> out) { file.read(at, out); },
      format);
}

void require_packed_text(const std::string& path, std::string_view head, DataFormat format) {
  if (const auto kind = kind_by_magic(path, head))
    refuse(path,
           fmt::format("compressed, and what it holds is no text, but {}",
                       holds_text(*kind) ? "compressed again" : to_string(*kind)),
           "decompress it: gxp reads nothing but text in gzip and zstd");
  require_no_magic(path, head);
  require_no_table(path, format);
  Unprintable unprintable;
  unprintable.look_at(std::as_bytes(std::span(head)));
  unprintable.require_none(path);
}

std::string unpacked_name(const std::string& path) {
  std::string name = lower_case(path);
  for (const std::string_view packed : {".gz"sv, ".zst"sv})
    if (name.ends_with(packed)) name.resize(name.size() - packed.size());
  return name;
}

}  // namespace gxp
