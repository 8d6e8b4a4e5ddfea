// How the bytes of a connection are protected (seal.h).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace gxp {

enum class Protection : uint8_t { kNone, kAuthenticate, kEncrypt };
constexpr std::array<std::string_view, 3> words_of(Protection) {
  return {"none", "authenticate", "encrypt"};
}

}  // namespace gxp
