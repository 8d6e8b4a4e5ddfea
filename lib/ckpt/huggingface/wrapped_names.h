// Names of parameters in models that DistributedDataParallel, torch.compile, Lightning Fabric, FSDP
// or activation checkpointing has wrapped: "module._orig_mod.model.norm.weight".
#pragma once

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// Takes the wrappers (module., _orig_mod., _forward_module., _fsdp_wrapped_module.,
// _checkpoint_wrapped_module.) out of all names, wherever they begin a part of one; nothing if two
// tensors would then have one name. For tensors of models that gxp computes, none of whose names
// have such a part.
void unwrap_names(NamedTensors& tensors);

}  // namespace gxp
