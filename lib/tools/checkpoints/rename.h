// Rules that rename, reorder and drop tensors between reading and writing.
//
//   [[rename]]
//   from = "layers\\.(\\d+)\\.(.*)"   # the whole name; ECMAScript's regular expressions
//   to = "model.layers.$1.$2"         # $1: what the first group has matched
//   [[drop]]
//   from = ".*\\.rotary_emb\\.inv_freq"
//   [[reorder]]
//   from = ".*\\.attention\\.w[qk]\\.weight"
//   rows = "pairs-to-halves"          # or "halves-to-pairs": with_rotary_rows() in tensor_views.h
//   head_size = 128
//
// They apply in the order of the file, each to the names that the rules before have made.
#pragma once

#include <cstdint>
#include <string>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

struct RenameCounts {
  uint64_t renamed = 0;
  uint64_t dropped = 0;
  uint64_t reordered = 0;
};

// Applies the rules in the file `path` to all tensors, optimizer state like the weights. kConfig,
// with file and line: no such rules, or a rule that matches no tensor; two tensors would end with
// one name and role; or queries and keys get Hugging Face's names for Meta's, or the other way, and
// no rule reorders. kIo.
RenameCounts rename_tensors(NamedTensors& tensors, const std::string& path);

}  // namespace gxp
