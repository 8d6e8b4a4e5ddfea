// The index of weights in several files: model.safetensors.index.json, pytorch_model.bin.index.json.
//
//   {"metadata": {...}, "weight_map": {"NAME": "FILE", ...}}
//
// weight_map decides: it names for each tensor the file next to it that must have it, and a
// copy in another file is not read, as transformers does it. Tensors that it leaves out are read from
// the files that it names.
// Source: huggingface_hub, serialization/_base.py; transformers 5.24, modeling_utils.py.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// The weights and the metadata of all files; `read_file` gets the path of one. kCorrupt, naming
// `path`: no such JSON, the name of a file that is not beside it, a tensor that its file does not
// have, or one that weight_map leaves out and two files have.
NamedTensors read_weight_index(const std::string& path,
                               const std::function<NamedTensors(const std::string&)>& read_file);

// The paths of the files that weight_map names. kCorrupt, kIo.
std::set<std::string> indexed_files(const std::string& path);

// kCorrupt: beside the index there is a file `single`, which weight_map does not name. Readers then
// differ on which weights the directory has; transformers takes that file.
void check_no_rival(const std::string& index, const std::string& single);

}  // namespace gxp
