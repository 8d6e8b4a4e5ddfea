#include "lib/text/bpe/byte_table.h"

#include <fmt/format.h>

#include <charconv>

#include "lib/base/text/utf8.h"
#include "lib/text/unicode/characters.h"

namespace gxp {
namespace {

constexpr char32_t kFirstOther = 0x100, kLastOther = 0x143;

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

constexpr std::array<char32_t, 256> make_characters() {
  std::array<char32_t, 256> characters{};
  char32_t next = kFirstOther;
  for (int byte = 0; byte < 256; ++byte)
    characters[size_t(byte)] = stands_for_itself(byte) ? char32_t(byte) : next++;
  return characters;
}

constexpr std::array<char32_t, 256> kCharacters = make_characters();
static_assert(kCharacters[0xad] == kLastOther);

constexpr std::array<int16_t, kLastOther + 1> make_bytes() {
  std::array<int16_t, kLastOther + 1> bytes{};
  bytes.fill(-1);
  for (int byte = 0; byte < 256; ++byte) bytes[kCharacters[size_t(byte)]] = int16_t(byte);
  return bytes;
}

constexpr auto kBytes = make_bytes();

}  // namespace

const std::array<char32_t, 256>& byte_characters() { return kCharacters; }

std::optional<std::string> bytes_of_characters(std::string_view token) {
  std::string bytes;
  while (!token.empty()) {
    const size_t length = utf8_length(token);
    if (length == 0) return std::nullopt;
    const char32_t code = character_at(token, 0).code;
    if (code > kLastOther || kBytes[code] < 0) return std::nullopt;
    bytes += char(kBytes[code]);
    token.remove_prefix(length);
  }
  return bytes;
}

std::string characters_of_bytes(std::string_view bytes) {
  std::string characters;
  for (const char byte : bytes) append_character(characters, kCharacters[uint8_t(byte)]);
  return characters;
}

std::string byte_token(uint8_t byte) { return fmt::format("<0x{:02X}>", byte); }

std::optional<uint8_t> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with(">")) return std::nullopt;
  uint8_t byte = 0;
  const char* const end = token.data() + 5;
  const auto [at, error] = std::from_chars(token.data() + 3, end, byte, 16);
  if (error != std::errc() || at != end) return std::nullopt;
  return byte;
}

}  // namespace gxp
