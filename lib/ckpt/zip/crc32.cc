#include "lib/ckpt/zip/crc32.h"

#include <array>
#include <cstring>

namespace gxp {
namespace {

using Crc32Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[0] is the CRC of one byte, tables[k] that of the byte followed by k zeros.
// Source: Kounavis & Berry, "Novel table lookup-based algorithms for high-performance CRC
// generation", IEEE Trans. Computers 57(11), 2008 ("slicing-by-8").
constexpr Crc32Tables make_crc32_tables() {
  Crc32Tables tables = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 == 1 ? 0xedb88320u : 0u);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t shorter = tables[k - 1][byte];
      tables[k][byte] = shorter >> 8 ^ tables[0][shorter & 0xff];
    }
  }
  return tables;
}

constexpr Crc32Tables kCrc32Tables = make_crc32_tables();

}  // namespace

uint32_t crc32(uint32_t crc, ConstMemory data) {
  GXP_ASSERT(data.space == MemorySpace::kHost);
  crc = ~crc;
  size_t i = 0;
  for (; i + 8 <= data.bytes; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, data.data + i, sizeof(word));
    word ^= crc;
    crc = 0;
    for (int k = 0; k < 8; ++k) crc ^= kCrc32Tables[size_t(7 - k)][word >> (8 * k) & 0xff];
  }
  for (; i < data.bytes; ++i)
    crc = crc >> 8 ^ kCrc32Tables[0][(crc ^ uint32_t(data.data[i])) & 0xff];
  return ~crc;
}

}  // namespace gxp
