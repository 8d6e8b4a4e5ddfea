// A directory of Meta's Llama: consolidated.00.pth and params.json, read.
//
// The names are Meta's (layers.0.attention.wq.weight), and so is the order of the rows of queries
// and keys: `gxp convert-ckpt --map meta-llama --config DIR` brings both to Hugging Face's. The
// settings that params.json has are in NamedTensors::config; the context, and the factors of
// use_scaled_rope, it does not have. Refused: the files of several tensor-parallel ranks.
// Source: meta-llama/llama-models, models/llama3/args.py.
#pragma once

#include <string>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

bool is_meta_llama(const std::string& path);
// Errors: kIo; kCorrupt, naming the file.
NamedTensors read_meta_llama(const std::string& path);

}  // namespace gxp
