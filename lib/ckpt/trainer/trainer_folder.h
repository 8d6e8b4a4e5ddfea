// The folders that transformers' Trainer (checkpoint-N) and accelerate's save_state() write, read.
//
//   model.safetensors, its shards and index,     weights; with config.json as a Hugging Face
//     or pytorch_model.bin and its index           directory
//   adapter_model.safetensors                    weights of adapters (peft.h)
//   latest, TAG/                                 DeepSpeed's: the fp32 master weights and the
//                                                  optimizer's moments (zero_checkpoint.h), whatever
//                                                  weights lie beside them
//   pytorch_model_fsdp_0/, optimizer_0/          FSDP's, sharded: DCP (dcp.h)
//   pytorch_model_fsdp.bin                       FSDP's, whole
//   optimizer.pt, optimizer.bin                  the optimizer (optimizer_file.h)
//   trainer_state.json                           the step
//   scheduler.*, scaler.pt, rng_state*.pth, random_states_*.pkl, training_args.bin, ...: not read
//
// Refused: several models in one folder, and shards of FSDP that each rank has saved for itself.
// Source: transformers 5.24, trainer.py; accelerate 1.15, checkpointing.py, utils/fsdp_utils.py.
#pragma once

#include <cstdint>
#include <string>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

bool is_trainer_folder(const std::string& path);
// Errors: kIo; kCorrupt, naming the file; kConfig: the weights are not those of the config.json.
NamedTensors read_trainer_folder(const std::string& path);
// The CRCs of the files that torch has written: how many files that were.
uint64_t verify_trainer_folder(const std::string& path);

}  // namespace gxp
