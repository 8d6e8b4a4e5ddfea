// How byte-level tokenizers write bytes: each is one character. Those that are printable in Latin-1
// stand for themselves, the others, in rising order, are U+0100 to U+0143.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gxp {

// The character of each byte.
const std::array<char32_t, 256>& byte_characters();
// The bytes that a token of such characters stands for; nothing: it has another character, or is
// not UTF-8.
std::optional<std::string> bytes_of_characters(std::string_view token);
std::string characters_of_bytes(std::string_view bytes);

// "<0x0A>", the token of a byte of tokenizers that fall back to bytes.
std::string byte_token(uint8_t byte);
// The byte of such a token, whose digits may be of either case.
std::optional<uint8_t> byte_of_token(std::string_view token);

}  // namespace gxp
