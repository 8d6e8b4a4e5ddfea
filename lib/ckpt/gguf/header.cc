#include "lib/ckpt/gguf/header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>

#include "lib/base/bytes.h"
#include "lib/base/error.h"
#include "lib/ckpt/gguf/layout.h"

namespace gxp {
namespace {

constexpr uint64_t kMaxGgufKeyBytes = 65535;
constexpr uint64_t kMaxGgufElements = uint64_t{1} << 30;  // of an array
constexpr size_t kMaxGgufDepth = 8;                       // of arrays in arrays

// Bytes of one value, in the order of GgufType; 0: they vary.
constexpr std::array<uint64_t, 13> kGgufTypeBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

constexpr std::pair<uint32_t, std::string_view> kQuantized[] = {
    {2, "Q4_0"},     {3, "Q4_1"},    {6, "Q5_0"},     {7, "Q5_1"},   {8, "Q8_0"},    {9, "Q8_1"},
    {10, "Q2_K"},    {11, "Q3_K"},   {12, "Q4_K"},    {13, "Q5_K"},  {14, "Q6_K"},   {15, "Q8_K"},
    {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"},
    {22, "IQ2_S"},   {23, "IQ4_XS"}, {29, "IQ1_M"},   {34, "TQ1_0"}, {35, "TQ2_0"},  {39, "MXFP4"},
    {40, "NVFP4"},   {41, "Q1_0"}};

// Reads a header from its first byte on, through a buffer.
class GgufCursor {
 public:
  explicit GgufCursor(const InputFile& file) : file_(file) {}

  [[nodiscard]] uint64_t at() const { return at_; }
  [[nodiscard]] uint64_t left() const { return file_.bytes() - at_; }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::kCorrupt, "read {}: at byte {}: {}", file_.path(), at_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  // Moves on by `bytes`, which must be there.
  void skip(uint64_t bytes) {
    if (bytes > left())
      refuse("truncated: {} bytes are needed, the file has {} more", bytes, left());
    at_ += bytes;
    if (at_ > kMaxGgufHeaderBytes)
      refuse("the header takes more than {} bytes", kMaxGgufHeaderBytes);
  }

  void take(Memory out) {
    const uint64_t begin = at_;
    skip(out.bytes);
    for (uint64_t done = 0, part = 0; done < out.bytes; done += part) {
      if (begin + done < buffer_begin_ || begin + done >= buffer_begin_ + buffer_.size())
        fill(begin + done);
      const uint64_t from = begin + done - buffer_begin_;
      part = std::min<uint64_t>(out.bytes - done, buffer_.size() - from);
      std::memcpy(out.data + done, buffer_.data() + from, part);
    }
  }

  template <class Number>
  Number number() {
    Number value;
    take({reinterpret_cast<std::byte*>(&value), sizeof(value)});
    return value;
  }

  // What has been passed since `begin`.
  [[nodiscard]] std::string bytes_from(uint64_t begin) const {
    std::string bytes(at_ - begin, '\0');
    file_.read(begin, memory_of(bytes));
    return bytes;
  }

  // `what` is for messages.
  std::string text(uint64_t limit, std::string_view what) {
    const auto bytes = number<uint64_t>();
    if (bytes > limit || bytes > left())
      refuse("{} of {} bytes; it may have {}, and the file has {} more", what, bytes, limit,
             left());
    std::string text(bytes, '\0');
    take(memory_of(text));
    return text;
  }

 private:
  void fill(uint64_t begin) {
    constexpr uint64_t kBufferBytes = 64 << 10;
    buffer_.resize(std::min(kBufferBytes, file_.bytes() - begin));
    file_.read(begin, memory_of(buffer_));
    buffer_begin_ = begin;
  }

  const InputFile& file_;
  uint64_t at_ = 0;
  uint64_t buffer_begin_ = 0;
  std::vector<std::byte> buffer_;
};

GgufType take_type(GgufCursor& cursor) {
  const auto type = cursor.number<uint32_t>();
  if (type >= kGgufTypeBytes.size()) cursor.refuse("a value of the unknown type {}", type);
  return GgufType(type);
}

struct GgufElements {
  GgufType type;
  uint64_t left;
};

GgufElements take_array_head(GgufCursor& cursor) {
  const GgufType type = take_type(cursor);
  const auto count = cursor.number<uint64_t>();
  if (count > kMaxGgufElements)
    cursor.refuse("an array of {} elements, more than {}", count, kMaxGgufElements);
  return {type, count};
}

void skip_elements(GgufCursor& cursor, GgufElements first) {
  std::vector<GgufElements> open = {first};
  while (!open.empty()) {
    if (open.size() > kMaxGgufDepth) cursor.refuse("arrays nested deeper than {}", kMaxGgufDepth);
    GgufElements& array = open.back();
    const uint64_t fixed = kGgufTypeBytes[size_t(array.type)];
    if (fixed > 0 || array.left == 0) {
      cursor.skip(array.left * fixed);
      open.pop_back();
    } else {
      --array.left;
      if (array.type == GgufType::kText)
        cursor.skip(cursor.number<uint64_t>());
      else
        open.push_back(take_array_head(cursor));
    }
  }
}

GgufArray take_array(GgufCursor& cursor) {
  const GgufElements elements = take_array_head(cursor);
  const uint64_t begin = cursor.at();
  skip_elements(cursor, elements);
  if (elements.type != GgufType::kF32) return {};
  return {cursor.bytes_from(begin)};
}

bool take_bool(GgufCursor& cursor) {
  const auto value = cursor.number<uint8_t>();
  if (value > 1) cursor.refuse("a bool is {}, neither 0 nor 1", value);
  return value == 1;
}

GgufValue take_value(GgufCursor& cursor) {
  switch (take_type(cursor)) {
    case GgufType::kU8:
      return uint64_t{cursor.number<uint8_t>()};
    case GgufType::kI8:
      return int64_t{cursor.number<int8_t>()};
    case GgufType::kU16:
      return uint64_t{cursor.number<uint16_t>()};
    case GgufType::kI16:
      return int64_t{cursor.number<int16_t>()};
    case GgufType::kU32:
      return uint64_t{cursor.number<uint32_t>()};
    case GgufType::kI32:
      return int64_t{cursor.number<int32_t>()};
    case GgufType::kF32:
      return cursor.number<float>();
    case GgufType::kBool:
      return take_bool(cursor);
    case GgufType::kText:
      return cursor.text(kMaxGgufHeaderBytes, "a text");
    case GgufType::kArray:
      return take_array(cursor);
    case GgufType::kU64:
      return cursor.number<uint64_t>();
    case GgufType::kI64:
      return cursor.number<int64_t>();
    case GgufType::kF64:
      return cursor.number<double>();
  }
  return GgufArray{};
}

void take_key(GgufCursor& cursor, GgufHeader& header) {
  const uint64_t begin = cursor.at();
  std::string key = cursor.text(kMaxGgufKeyBytes, "a key");
  if (key.empty()) cursor.refuse("a key has no name");
  const auto [place, is_new] = header.keys.try_emplace(std::move(key));
  if (!is_new) cursor.refuse("the key '{}' occurs twice", place->first);
  place->second = take_value(cursor);
  if (!place->first.starts_with(kTokenizerKeys)) return;
  header.tokenizer.encoded += cursor.bytes_from(begin);
  ++header.tokenizer.count;
}

StorageDType take_dtype(GgufCursor& cursor, const std::string& tensor) {
  const auto id = cursor.number<uint32_t>();
  const auto* const found = std::ranges::find(kGgmlTypes, id, &GgmlType::id);
  if (found != std::end(kGgmlTypes)) return found->dtype;
  for (const auto& [quantized, name] : kQuantized) {
    if (quantized == id)
      cursor.refuse("tensor '{}' is of the quantized type {}, which gxp does not read", tensor,
                    name);
  }
  cursor.refuse("tensor '{}' is of the unknown type {}", tensor, id);
}

// A tensor and its offset in the data.
std::pair<TensorInfo, uint64_t> take_tensor(GgufCursor& cursor) {
  TensorInfo info;
  info.name = cursor.text(kMaxGgufNameBytes, "a tensor's name");
  if (info.name.empty() || info.name.find('\0') != std::string::npos)
    cursor.refuse("a tensor's name is empty or holds a NUL");
  const auto dimensions = cursor.number<uint32_t>();
  if (dimensions > kMaxGgufDimensions)
    cursor.refuse("tensor '{}' has {} dimensions, more than {}", info.name, dimensions,
                  kMaxGgufDimensions);
  for (uint32_t i = 0; i < dimensions; ++i) info.shape.push_back(cursor.number<uint64_t>());
  std::ranges::reverse(info.shape);
  info.dtype = take_dtype(cursor, info.name);
  const auto count = checked_count(info.shape);
  uint64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, size_of(info.dtype), &bytes))
    cursor.refuse("the dimensions of tensor '{}' multiply to more than 64 bits", info.name);
  const auto offset = cursor.number<uint64_t>();
  return {std::move(info), offset};
}

uint64_t alignment_of(const GgufHeader& header, const GgufCursor& cursor) {
  const auto found = header.keys.find("general.alignment");
  if (found == header.keys.end()) return kGgufAlignment;
  const auto* const alignment = std::get_if<uint64_t>(&found->second);
  if (alignment == nullptr || !std::has_single_bit(*alignment) || *alignment > UINT32_MAX)
    cursor.refuse("general.alignment is not a 32-bit power of two");
  return *alignment;
}

// The tensors follow each other, and the last one ends with the file, or with the padding after it.
void place_tensors(GgufHeader& header, uint64_t alignment, uint64_t file_bytes,
                   const GgufCursor& cursor) {
  const auto aligned = [&](uint64_t bytes) { return round_up(bytes, alignment); };
  const uint64_t begin = header.tensors.empty() ? cursor.at() : aligned(cursor.at());
  uint64_t end = 0;
  for (size_t i = 0; i < header.tensors.size(); ++i) {
    const TensorInfo& info = header.tensors[i];
    const uint64_t expected = aligned(end);
    uint64_t& offset = header.offsets[i];
    if (offset != expected)
      cursor.refuse("tensor '{}' begins at byte {} of the data, expected {}", info.name, offset,
                    expected);
    const uint64_t room = file_bytes - std::min(file_bytes, begin);
    if (expected > room || info.bytes() > room - expected)
      cursor.refuse("truncated: tensor '{}' takes {} bytes from {} on, the file has {}", info.name,
                    info.bytes(), begin + expected, file_bytes);
    end = expected + info.bytes();
    offset += begin;
  }
  if (file_bytes > aligned(begin + end))
    cursor.refuse("the tensors end at byte {}, the file has {}; it is longer than its header says",
                  begin + end, file_bytes);
}

}  // namespace

bool begins_like_gguf(const InputFile& file) {
  std::string magic(kGgufMagic.size(), '\0');
  if (file.bytes() < magic.size()) return false;
  file.read(0, memory_of(magic));
  return magic == kGgufMagic;
}

GgufHeader read_gguf_header(const InputFile& file) {
  GgufCursor cursor(file);
  if (!begins_like_gguf(file)) cursor.refuse("the file does not begin with \"GGUF\"");
  cursor.skip(kGgufMagic.size());
  const auto version = cursor.number<uint32_t>();
  if (version < 2 || version > kGgufVersion)
    cursor.refuse("version {}; gxp reads 2 and {}, little-endian", version, kGgufVersion);
  const auto tensors = cursor.number<uint64_t>();
  const auto keys = cursor.number<uint64_t>();
  // The least that each takes: a key of one byte with a value of one; a name of one byte, no
  // dimensions.
  constexpr uint64_t kLeastKey = 8 + 1 + 4 + 1;
  constexpr uint64_t kLeastTensor = 8 + 1 + 4 + 4 + 8;
  if (keys > cursor.left() / kLeastKey || tensors > cursor.left() / kLeastTensor)
    cursor.refuse("{} tensors and {} keys do not fit into the {} bytes that are left", tensors,
                  keys, cursor.left());
  GgufHeader header;
  for (uint64_t i = 0; i < keys; ++i) take_key(cursor, header);
  std::set<std::string> names;
  for (uint64_t i = 0; i < tensors; ++i) {
    auto [info, offset] = take_tensor(cursor);
    if (!names.insert(info.name).second) cursor.refuse("tensor '{}' occurs twice", info.name);
    header.tensors.push_back(std::move(info));
    header.offsets.push_back(offset);
  }
  place_tensors(header, alignment_of(header, cursor), file.bytes(), cursor);
  return header;
}

}  // namespace gxp
