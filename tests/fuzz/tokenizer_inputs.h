// Files of tokenizers, chat templates and configurations as inputs of fuzz_readers.cc.
#pragma once

#include <optional>
#include <string_view>

#include "tests/fuzz/checkpoint_inputs.h"

namespace gxp {

// "tokenizer": a tokenizer.json, a NUL, and a text that it encodes and decodes; "tiktoken" and
// "sentencepiece" likewise, with the length of the file, 16 bits, before both; "chat": a chat template, a NUL, and a line of a
// file of chats that it renders; "import": a configuration of another launcher. Nothing: another
// name.
std::optional<CheckpointInput> find_tokenizer_input(std::string_view name);

}  // namespace gxp
