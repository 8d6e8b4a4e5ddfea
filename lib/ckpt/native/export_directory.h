// The weights of a checkpoint for other programs, beside its files:
//
//   step-00000010/huggingface/    a Hugging Face directory, complete if it has this name
//
// It goes with its step.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

inline constexpr const char* kExportName = "huggingface";

// Whether a name in a step directory is of an export, or of one that is being written:
// "huggingface/" and its files.
bool is_export_file(std::string_view name);

struct ExportOptions {
  StorageDType dtype = StorageDType::kBF16;  // F32, F16 or BF16
  // What the run started from. If that is a Hugging Face directory, files of the tokenizer are
  // copied from there, and so is what gxp does not know of its config.json.
  std::string origin = {};
  // The directory whose tokenizer and chat template are copied, if not those of the origin.
  std::string tokenizer = {};
};

// Writes the weights of the complete checkpoint in `step_directory`, each number rounded once, and
// returns the path. An existing one is replaced. Errors: write_checkpoint()'s; kPeer, and nothing
// is left, after a stop is requested. Numbers that become infinite are counted in a warning.
// Cost: as write_checkpoint(); optimizer state is not read, and hashes are not compared again.
std::string export_weights(const std::string& step_directory, const ExportOptions& options,
                           const std::stop_token& stop);

}  // namespace gxp
