// The full layout of a checkpoint (checkpoint.layout): every tensor whole, in one file.
#pragma once

#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/ckpt/native/writer.h"

namespace gxp {

// Joins files of all ranks in the partial directory of `writer.step` into the one that a single
// rank would have written; `parts` are either all ranks' frozen files or all ranks' other files.
// Tensors are ordered by role, and within a role as in `names`, which has the name of each. So the
// bytes depend neither on the world size nor on the strategy. The files of the parts stay:
// publishing removes what it does not list. One part is returned as it is. nullopt if `stop` is
// requested.
// Errors: as CheckpointWriter's; kCorrupt: a file no longer has the hash that its rank gave it.
// Cost: reads all bytes twice and writes them once, a block at a time.
std::optional<FilePart> join_parts(const std::string& dir, const WriterRank& writer,
                                   std::span<const FilePart> parts,
                                   const std::vector<std::string>& names,
                                   const std::stop_token& stop);

}  // namespace gxp
