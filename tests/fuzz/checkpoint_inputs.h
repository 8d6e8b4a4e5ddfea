// What a fuzzed input is as a checkpoint: a file of a format, or the pickle in one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gxp {

struct CheckpointInput {
  std::string_view name;
  bool is_pickle = false;  // so that it is altered opcode by opcode
  // Reads the bytes, and what they hold, to the end. Errors: the reader's.
  void (*read)(const std::string& bytes);
};

extern const std::span<const CheckpointInput> kCheckpointInputs;

}  // namespace gxp
