// A root of system files from a tar archive (plain, gzip, bzip2, xz, zstd), as
// hwloc-gather-topology writes it. It is read into memory: nothing is written to a disk, so no name
// in it can do harm.
//   Limits  kMaxArchiveEntries names, directories above them and hard links too; kMaxArchiveBytes
//           that are unpacked, and as many that are kept, a hard link's as its file's. Devices and
//           pipes are passed over.
//   Errors  kCorrupt: no archive, over a limit, a name that leads out of it, or there is no sys in
//           it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lib/topo/read/system_root.h"

namespace gxp {

inline constexpr size_t kMaxArchiveEntries = 1u << 18;
inline constexpr size_t kMaxArchiveBytes = 256u << 20;

// `bytes` is the file's content; `name` is for messages.
std::unique_ptr<SystemRoot> parse_system_archive(std::string_view bytes, const std::string& name);
// Whether a file with these first bytes (512 for a tar) is an archive.
bool looks_like_archive(std::string_view bytes);

}  // namespace gxp
