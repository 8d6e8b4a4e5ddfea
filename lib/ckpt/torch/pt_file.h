// PyTorch's files (.pt, .pth, .bin, .ckpt): what torch.save writes of state dicts, as a zip archive
// or, before torch 1.6, legacy (torch_archive.h).
//
// gxp reads
//   a state dict                           its tensors, under their names (state_dict.h)
//   {"model": ..., "optimizer": ..., ...}  the tensors of the first, and what the second keeps of
//                                          each (optimizer_state.h). "model" may be "state_dict",
//                                          "model_state_dict" or "module"; "optimizer" may be
//                                          "optimizer_state_dict" or "optim", or, as Lightning has
//                                          it, the one item of "optimizer_states"
// The optimizer's settings are read as optimizer_settings.h says.
// Numbers and texts at the top of the latter become metadata; "step", "global_step", "iteration" or
// "iter_num" is the step, or else the one that all parameters' states have. What else is there is
// left out, and the log says what; so is optimizer state whose parameters' names cannot be told.
// A whole pickled module is refused: its class would have to be imported. Views of one storage are
// tensors of their own; together they may claim eight times the file's bytes and 64 MiB.
//
// Of weights alone, gxp writes the state dict: an OrderedDict, as model.state_dict() makes it and
// load_state_dict() takes it. With optimizer state, it writes what training scripts save:
//   {"model": state dict,
//    "optimizer": {"state": {i: {"step": float32, "exp_avg": ..., "exp_avg_sq": ...}},
//                  "param_groups": [{"lr": ..., ..., "params": [i...], "param_names": [...]}]},
//    "step": n}
// The groups are nanoGPT's: the tensors of two and more dimensions, whose weights decay, and the
// others; with optim.decay_vectors there is one. Both have the settings of torch.optim.AdamW, or of SGD for a momentum alone; values that
// are not known are torch's defaults. torch.load(weights_only=True) opens both, and what gxp knows
// of the run is in the state dict's _metadata["gxp"], which load_state_dict() passes over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/ckpt/format.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

// By content: the first member of a zip archive is ROOT/data.pkl, or a legacy file's magic number.
// Or by name, .pt or .pth, as the content may be damaged.
bool is_pt(const std::string& path);
NamedTensors read_pt(const std::string& path);
// One file. Errors: kIo, kConfig as put_tensor().
void write_pt(const NamedTensors& tensors, const std::string& path, const WriteOptions& options);
// 1, or 0 if the file records no CRCs.
uint64_t verify_pt(const std::string& path);

}  // namespace gxp
