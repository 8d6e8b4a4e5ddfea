// Signatures and lengths of a zip archive's records. Only the .cc files of this folder and their
// tests include it. Source: PKWARE APPNOTE.TXT 6.3.10, 4.3 and 4.5.
#pragma once

#include <libdeflate.h>

#include <cstdint>

#include "lib/base/error.h"
#include "lib/device/memory.h"

namespace gxp {

// The CRC-32 of zip.

// The CRC of what had the CRC `crc` (0 for nothing), followed by `data`, which is host memory.
inline uint32_t zip_crc(uint32_t crc, ConstMemory data) {
  GXP_ASSERT(data.space == MemorySpace::kHost);
  return ::libdeflate_crc32(crc, data.data, data.bytes);
}

constexpr uint32_t kZipLocal = 0x04034b50;  // "PK\3\4": a local header
constexpr uint32_t kZipDescriptor = 0x08074b50;
constexpr uint32_t kZipEntry = 0x02014b50;  // of the central directory
constexpr uint32_t kZip64End = 0x06064b50;
constexpr uint32_t kZipLocator = 0x07064b50;  // of the zip64 end record
constexpr uint32_t kZipEnd = 0x06054b50;

// Bytes without the parts of variable length.
constexpr uint64_t kZipLocalBytes = 30;
constexpr uint64_t kZipEntryBytes = 46;
constexpr uint64_t kZip64EndBytes = 56;
constexpr uint64_t kZipLocatorBytes = 20;
constexpr uint64_t kZipEndBytes = 22;

constexpr uint32_t kZip32 = 0xffffffff;  // in a 32-bit field: the zip64 extra field has the value
constexpr uint16_t kZip64Extra = 1;
constexpr uint16_t kZipPadding = 0x4246;  // "FB": the extra field with which torch aligns payloads

}  // namespace gxp
