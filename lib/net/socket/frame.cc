#include "lib/net/socket/frame.h"

#include <array>

#include "lib/base/error.h"

namespace gxp {
namespace {

constexpr size_t kHeaderBytes = 15;

const uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

}  // namespace

void store_u32(uint8_t* to, uint32_t value) {
  for (int i = 0; i < 4; ++i) to[i] = uint8_t(value >> (8 * i));
}

uint32_t load_u32(const uint8_t* from) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= uint32_t(from[i]) << (8 * i);
  return value;
}

void append_frame(std::string& out, const Frame& frame) {
  GXP_ASSERT(frame.key.size() <= kMaxKeyBytes);
  std::array<uint8_t, kHeaderBytes> header{};
  header[0] = uint8_t(frame.type);
  header[1] = uint8_t(frame.key.size());
  header[2] = uint8_t(frame.key.size() >> 8);
  store_u32(&header[3], uint32_t(frame.value.size()));
  store_u32(&header[7], frame.request);
  store_u32(&header[11], uint32_t(frame.rank));
  out.append(reinterpret_cast<const char*>(header.data()), header.size());
  out += frame.key;
  out += frame.value;
}

std::optional<Frame> take_frame(std::string_view in, size_t* offset, size_t max_value_bytes) {
  const std::string_view rest = in.substr(*offset);
  if (rest.size() < kHeaderBytes) return std::nullopt;
  const uint8_t* header = bytes_of(rest);
  const size_t key_bytes = size_t{header[1]} | size_t{header[2]} << 8;
  const size_t value_bytes = load_u32(header + 3);
  if (header[0] < uint8_t(FrameType::kJoin) || header[0] > uint8_t(FrameType::kAbsent) ||
      key_bytes > kMaxKeyBytes || value_bytes > max_value_bytes)
    fail(ErrorKind::kPeer, "read a store message: malformed (kind {}, key {} B, value {} B)",
         int{header[0]}, key_bytes, value_bytes);
  const size_t whole = kHeaderBytes + key_bytes + value_bytes;
  if (rest.size() < whole) return std::nullopt;
  *offset += whole;
  return Frame{FrameType(header[0]), std::string(rest.substr(kHeaderBytes, key_bytes)),
               std::string(rest.substr(kHeaderBytes + key_bytes, value_bytes)),
               load_u32(header + 7), int32_t(load_u32(header + 11))};
}

std::string pack_strings(const std::vector<std::string>& strings) {
  std::string packed;
  for (const std::string& text : strings) {
    std::array<uint8_t, 4> length{};
    store_u32(length.data(), uint32_t(text.size()));
    packed.append(reinterpret_cast<const char*>(length.data()), length.size());
    packed += text;
  }
  return packed;
}

std::vector<std::string> unpack_strings(std::string_view packed) {
  std::vector<std::string> strings;
  while (!packed.empty()) {
    const size_t length = packed.size() < 4 ? SIZE_MAX : load_u32(bytes_of(packed));
    if (packed.size() < 4 || packed.size() - 4 < length)
      fail(ErrorKind::kPeer, "read a list of strings: it is truncated");
    strings.emplace_back(packed.substr(4, length));
    packed.remove_prefix(4 + length);
  }
  return strings;
}

}  // namespace gxp
