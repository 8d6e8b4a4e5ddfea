// GPT-2 weights as llm.c's gpt2_*.bin has them: a header of 256 int32, then each kind of tensor as
// one block over all layers, without padding between them. Little-endian.
//
//   header   [0] 20240326   [1] version: 3 F32, 5 BF16   [2] context T   [3] vocabulary V
//            [4] layers L   [5] heads   [6] channels C
//            [7] padded vocabulary Vp, written as the next multiple of 128   the others 0
//   wte (Vp, C)   wpe (T, C)
//   L of each: norm 1 weight (C), bias (C)   qkv weight (3C, C), bias (3C)   attention's projection
//              weight (C, C), bias (C)   norm 2 weight (C), bias (C)   fc weight (4C, C), bias (4C)
//              MLP's projection weight (C, 4C), bias (C)
//   final norm weight (C), bias (C)
//
// Matrices are (outputs, inputs), transposed against gxp's and Hugging Face's GPT-2; both turn them
// as they are read. The norm's epsilon is not in the file: llm.c computes with 1e-5.
// Source: karpathy/llm.c, train_gpt2.py (write_model), train_gpt2.c (gpt2_build_from_checkpoint).
#pragma once

#include <string>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

// Whether `path` is a regular file that begins with llm.c's number for models.
bool is_llmc(const std::string& path);

// Tensors under gxp's names, and the model's settings. The file must have exactly the size that its
// header declares; kCorrupt otherwise, and for sizes that make no model. Rows of wte beyond V are
// left out, and a warning says so if they are not all zero. Cost: reads the header and those rows.
NamedTensors read_llmc(const std::string& path);

// kConfig: `tensors` is no GPT-2 whose settings are known, its weights are not all F32 or all BF16,
// or its epsilon is another.
void check_fits_llmc(const NamedTensors& tensors);

// The weights as one file. Errors: those of check_fits_llmc() before the file is made; kCorrupt, a
// tensor that the settings ask for is not there; kIo. Cost: one buffer of 4 MiB.
void write_llmc(const NamedTensors& tensors, const std::string& path);

}  // namespace gxp
