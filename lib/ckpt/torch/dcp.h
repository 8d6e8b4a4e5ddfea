// PyTorch's distributed checkpoints (torch.distributed.checkpoint, DCP), as FSDP and torchtitan
// save them: a directory with
//   .metadata       what it holds and where (dcp_metadata.h), written last: without it a save has
//                   not ended
//   __R_N.distcp    of rank R: archives of torch.save (torch_archive.h), one after the other, each
//                   of one chunk of a tensor or of one value that is no tensor
//
// Read are tensors of any sharding, under names without what they have in common (dcp_names.h). The
// step comes from "step" (global_step, iteration, iter_num) in the state dict, or is the one that
// the states of all parameters have. Numbers and texts become metadata, the optimizer's settings
// as optimizer_settings.h says; other values are left out, and the log says which. Refused, besides
// what dcp_metadata.h and torch_archive.h refuse: places of two values that overlap in a file or
// reach beyond it, archives that hold another type or shape than .metadata says, or a tensor of
// more bytes than the archive; checkpoints whose ranks have written a __R.metadata each
// (use_collectives=False). It keeps one file per rank open.
//
// Written is what
//   {"model": model.state_dict(), "optim": get_optimizer_state_dict(...), "step": n}
// is saved as by one rank, each tensor as one chunk: dcp.load() opens it into a state dict of any
// sharding. One or two groups of parameters have settings as in optimizer_settings.h. gxp's facts
// about the run are in "gxp", an empty OrderedDict with a _metadata (pt_metadata.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/ckpt/format.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

// A directory with .metadata, or with files of such names as a save that has not ended leaves.
bool is_dcp(const std::string& path);
// Whether write_dcp() gives files such a name.
bool is_dcp_file(std::string_view name);
// Reads .metadata, and of each archive all but the elements. Errors: kIo; kCorrupt, naming the file
// and the key.
NamedTensors read_dcp(const std::string& path);
// Into a directory that exists: files of up to `shard_bytes`, a larger tensor alone. Errors: kIo,
// kConfig as put_tensor().
void write_dcp(const NamedTensors& tensors, const std::string& path, const WriteOptions& options);
// Compares every archive with its CRCs. Returns how many files that were, 0 if an archive has none.
uint64_t verify_dcp(const std::string& path);

}  // namespace gxp
