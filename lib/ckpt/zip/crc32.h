// The CRC-32 of zip.
#pragma once

#include <libdeflate.h>

#include <cstdint>

#include "lib/base/error.h"
#include "lib/device/memory.h"

namespace gxp {

// The CRC of what had the CRC `crc` (0 for nothing), followed by `data`, which is host memory.
inline uint32_t zip_crc(uint32_t crc, ConstMemory data) {
  GXP_ASSERT(data.space == MemorySpace::kHost);
  return ::libdeflate_crc32(crc, data.data, data.bytes);
}

}  // namespace gxp
