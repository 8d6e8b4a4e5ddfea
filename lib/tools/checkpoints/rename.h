// Rules that rename, reorder, transpose, add and drop tensors between reading and writing.
//
//   [[rename]]
//   from = "layers\\.(\\d+)\\.(.*)"   # the whole name; ECMAScript's regular expressions
//   to = "model.layers.$1.$2"         # $1: what the first group has matched
//   [[drop]]
//   from = ".*\\.rotary_emb\\.inv_freq"
//   optional = true                   # in any rule: it may match nothing
//   [[reorder]]
//   from = ".*\\.attention\\.w[qk]\\.weight"
//   rows = "pairs-to-halves"          # or "halves-to-pairs": with_rotary_rows() in tensor_views.h;
//                                     # or "unchanged": the rows are in Hugging Face's order already
//   head_size = 128                   # if left out, the model's
//   [[transpose]]
//   from = ".*\\.c_attn\\.weight"
//   [[zeros]]                         # vectors as long as the rows of the weights that match, where
//   from = "(.*)\\.ln_1\\.weight"     # no tensor has the name
//   to = "$1.ln_1.bias"
//
// They apply in the order of the file, each to the names that the rules before have made, and to
// optimizer state like the weights; zeros are weights alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "lib/ckpt/named_tensors.h"
#include "lib/tools/checkpoints/rules.h"

namespace gxp {

// How many tensors the rules of each kind have matched, by RuleKind.
using RuleCounts = std::array<uint64_t, 5>;

// Applies the rules in the file `map`, or those that gxp has under that name (named_maps.h). After
// rules of the latter kind, `tensors` has the model's settings that the program records.
// `settings`: what is known of the model, for the size of its heads. kConfig, with file and line: no
// such rules, or a rule that matches no tensor; two tensors would end with one name and role; the
// size of the heads is needed and not known; or queries and keys get Hugging Face's names for
// Meta's, or the other way, and no rule reorders. kIo.
RuleCounts rename_tensors(NamedTensors& tensors, const std::string& map,
                          const KeyValues& settings = {});

}  // namespace gxp
