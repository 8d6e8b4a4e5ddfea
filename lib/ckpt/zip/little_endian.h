// Numbers in files of the formats here: little-endian, at any alignment. gxp runs on little-endian
// machines only.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace gxp {

static_assert(std::endian::native == std::endian::little);

// The number at `offset`, which the caller has checked to lie in `bytes`.
template <class T>
T read_little(std::string_view bytes, size_t offset) {
  GXP_ASSERT(offset <= bytes.size() && sizeof(T) <= bytes.size() - offset);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <class T>
void append_little(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

}  // namespace gxp
