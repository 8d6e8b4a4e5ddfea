// Files that did not change from one checkpoint to the next, such as those of frozen parameters:
// the new checkpoint gets another name for the older file (a hard link) in place of a copy. Either
// checkpoint may be removed; the file exists as long as one link to it remains.
#pragma once

#include <string>
#include <string_view>

#include "lib/ckpt/native/manifest.h"
#include "lib/ckpt/own_files.h"

namespace gxp {

// Replaces `file`, complete and durable in the partial directory, by the file of that name in the
// newest complete checkpoint of `dir`, if that has the same owner, size and hash. The older file is
// read and hashed again, so that one that has been damaged since then is not taken over. Returns
// whether it was replaced. Throws nothing: if an older file cannot be read, or the file system has
// no hard links, which the log then says, the new file stays.
// Cost: the older manifest is read; where it lists the hash, the older file, too.
bool share_unchanged(const OwnDirectory& partial, const DataFile& file,
                     const std::string& dir) noexcept;

// "shard-00000-of-00002.bin.same": the older file's name in the partial directory until it has
// replaced the new one.
bool is_shared_name(std::string_view name);

}  // namespace gxp
