// What a fuzzed input is as a checkpoint: a file of a format, or a part of one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gxp {

struct CheckpointInput {
  bool is_pickle = false;  // so that it is altered opcode by opcode
  // Reads the bytes, and what they hold, to the end. Errors: the reader's.
  std::function<void(const std::string& bytes)> read;
};

// By the name of a row of kFormats, whose reader gets a file; "manifest" and "pickle" are read as
// parts, and "dcp" as its file .metadata. Nothing under any other name.
std::optional<CheckpointInput> find_checkpoint_input(std::string_view name);

}  // namespace gxp
