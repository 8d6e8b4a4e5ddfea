// The tokenizer of a Hugging Face directory as the keys of a GGUF file, which llama.cpp needs to run
// a model. Two of llama.cpp's kinds are written:
//
// gpt2    Byte-level BPE, of a tokenizer.json, or of vocab.json and merges.txt. llama.cpp knows the
//         patterns that split a text into words by name (tokenizer.ggml.pre); which it is follows
//         from the pre_tokenizer of tokenizer.json, and another pattern than its own is refused.
// llama   BPE over characters with a fallback to bytes, as SentencePiece has it: of a
//         tokenizer.model, or of a tokenizer.json, where the score of a token is its merge's place.
//         llama.cpp merges any two tokens that make one; a tokenizer.json whose merges allow less is
//         refused.
//
// What llama.cpp cannot do is refused, except for two things that its own converter leaves out, of
// which a warning tells: normalising to NFC, and tokens that take the space beside them with them.
//
// tokenizer.huggingface.json holds tokenizer.json, and gxp.file.NAME the other text files, so that a
// directory can be made of the GGUF file again; not stored are tokenizer.model, and vocab.json and
// merges.txt where a tokenizer.json says the same.
// Sources: llama.cpp of October 2026: src/llama-vocab.cpp, conversion/base.py, gguf-py/gguf/vocab.py;
// ggml, docs/gguf.md; google/sentencepiece, src/sentencepiece_model.proto.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/gguf/header.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

struct GgufTokenizer {
  std::vector<GgufKey> keys = {};  // the companions' text files among them
  bool is_there = false;           // else the files hold no tokenizer
  std::vector<std::string> warnings = {};
};

// Of `companions`, paths of a directory's files. `config` is the text of config.json, which may name
// the special tokens, or "". kConfig: llama.cpp has no such tokenizer, or it has tokens beyond the
// vocabulary's size. kCorrupt: a file is none of its kind. Cost: the files, parsed, in memory.
GgufTokenizer make_gguf_tokenizer(const std::vector<std::string>& companions,
                                  const std::string& config, int vocab_size);

// The key of a companion but tokenizer.json.
std::string gguf_file_key(std::string_view name);

// The tokenizer of a file that has been read.
StoredTokenizer read_gguf_tokenizer(const GgufHeader& header);

}  // namespace gxp
