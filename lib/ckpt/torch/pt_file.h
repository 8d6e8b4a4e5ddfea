// PyTorch's files (.pt, .pth, .bin, .ckpt): what torch.save writes of state dicts, as a zip archive
// or, before torch 1.6, legacy (torch_archive.h).
//
// gxp reads
//   a state dict                           its tensors, under their names (state_dict.h)
//   {"model": ..., "optimizer": ..., ...}  the tensors of the first, and what the second keeps of
//                                          each (optimizer_state.h). "model" may be "state_dict",
//                                          "model_state_dict" or "module"; "optimizer" is what has
//                                          "state" and "param_groups", under any key, also as the
//                                          one item of a list or dict
//   {"net": ..., "optimizer": ..., ...}    the same with the model under a key of its own: the one
//                                          part beside the optimizer that has tensors. With several
//                                          such parts it is refused
// The optimizer's settings are read as optimizer_settings.h says.
// Numbers and texts at the top of the latter become metadata; "step", "global_step", "iteration" or
// "iter_num" is the step, or else the one that all parameters' states have. All other entries are
// left out and logged, but for nanoGPT's model_args (kModelArgsKey). Parts of the optimizer that
// cannot be kept are in OptimizerRecord::lost: all of it, if the names of its parameters are unknown
// or there are several optimizers. An optimizer alone is refused. A directory with pytorch_model.bin, or with several such files and
// pytorch_model.bin.index.json (weight_index.h), holds the weights of all, as transformers before
// 4.35 and DeepSpeed's zero_to_fp32 write them. A whole pickled module is refused: its class would
// have to be imported. Views of one storage are tensors of their own; together they may claim eight
// times the file's bytes and 64 MiB.
//
// For weights alone, gxp writes the state dict: an OrderedDict, as model.state_dict() makes it and
// load_state_dict() takes it. With optimizer state, it writes what training scripts save:
//   {"model": state dict,
//    "optimizer": {"state": {i: {"step": float32, "exp_avg": ..., "exp_avg_sq": ...}},
//                  "param_groups": [{"lr": ..., ..., "params": [i...], "param_names": [...]}]},
//    "step": n}
// The groups, their order and settings, and each parameter's step are those that the source has
// (optimizer_record.h). Of a run of gxp's they are nanoGPT's: the tensors of two and more
// dimensions, whose weights decay, and the others; with optim.decay_vectors there is one. Both have
// the settings of torch.optim.AdamW, or of SGD for a momentum alone; values that are not known are
// torch's defaults. torch.load(weights_only=True) opens both, and what gxp knows of the run is in
// the state dict's _metadata["gxp"], which load_state_dict() passes over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/format.h"
#include "lib/ckpt/named_tensors.h"
#include "lib/ckpt/torch/optimizer_state.h"

namespace gxp {

// The key in NamedTensors::metadata of nanoGPT's "model_args", a JSON object of their scalars.
inline constexpr const char* kModelArgsKey = "model_args";

// By content: the first member of a zip archive is ROOT/data.pkl, or a legacy file's magic number.
// Or by name, .pt, .pth or .bin.index.json, as the content may be damaged; a directory by what is
// in it.
bool is_pt(const std::string& path);
NamedTensors read_pt(const std::string& path);
// What other formats have in common with it. Adds the weights of a state dict to `result`, and
// marks those that share the storage of an earlier one.
std::vector<OptimizerWeight> take_pt_weights(const TorchArchive& archive, PickleValue weights,
                                             const std::string& where, NamedTensors& result);
// Adds the weights' optimizer state from a state_dict() of torch.optim.
void take_pt_optimizer(const TorchArchive& archive, PickleValue optimizer,
                       const std::vector<OptimizerWeight>& weights, const std::string& path,
                       NamedTensors& result);
// One file. Errors: kIo, kConfig as put_tensor().
void write_pt(const NamedTensors& tensors, const std::string& path, const WriteOptions& options);
// How many files that were, 0 if one of them records no CRCs.
uint64_t verify_pt(const std::string& path);

}  // namespace gxp
