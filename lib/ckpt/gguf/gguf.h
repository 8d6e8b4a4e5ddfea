// GGUF files, which llama.cpp and others run: header.h describes their bytes, model.h the models
// in them, tokenizer.h the tokenizers. Read: elements of F32, F16, BF16, F64 and I8 to I64; the same are written.
//
// A file of a family that both know holds that model: gxp's names, layout and settings. All others
// hold named tensors, whose names and layout are unchanged.
#pragma once

#include <string>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// Whether `path` is a regular file that begins with "GGUF", or has a name that ends in .gguf.
bool is_gguf(const std::string& path);

// A model that gxp computes, or named tensors and a warning that says why. `metadata` has the keys
// with a single value, as text, but for those that are the model's settings. kCorrupt: see
// header.h; a tensor of a quantized type; one file of several.
NamedTensors read_gguf(const std::string& path);

// kConfig: settings that make no model, or that GGUF cannot say, a tensor for which GGUF has no
// place, or a tokenizer that llama.cpp does not have.
void check_fits_gguf(const NamedTensors& tensors);

// The weights as one file. Where the source does not tell its model, they are named tensors, and
// general.architecture is that of `metadata` or "unknown", of which a warning tells. The tokenizer is
// that of the companions, or of the GGUF file that was read, unchanged; without either, a line of the
// log says that there is none. Errors: those of check_fits_gguf(), before the file is made;
// kCorrupt: a tensor that the settings ask for is not there; kIo. Cost: one buffer of 4 MiB.
void write_gguf(const NamedTensors& tensors, const std::string& path);

}  // namespace gxp
