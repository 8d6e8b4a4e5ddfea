// A model as files describe it, for planning: a Hugging Face config.json, the headers of
// safetensors files, or a folder with either. No tensor's data is read.
// A config.json is of one of the families of lib/arch/family.h, with the head of any class.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/arch/published_models.h"

namespace gxp {

struct ModelFile {
  std::string path = {};                      // the file that was read
  std::string family = {};                    // model_type; "" if only weights are known
  std::string architecture = {};              // the class, unless it has a language model's head
  std::optional<PublishedModel> shape = {};   // without a name and a source; of a config.json
  uint64_t parameters = 0;                    // by the shape, else those that are stored
  std::optional<uint64_t> stored_bytes = {};  // of the weights, if there are any
  std::string dtype = {};  // of most stored elements, else config.json's; "": unknown
};

// Whether a word that could name a model means a file: it has a '/', ends in .json or .safetensors,
// or exists as a file.
bool names_model_file(const std::string& text);

// `path` is a config.json, a .safetensors file, its index, or a folder. kIo: cannot be read, or a
// folder with neither; kCorrupt: no such JSON or header; kConfig: a family
// or class that is not supported, and which are, or a size that makes no model. Keys that
// config.json lacks have the class's own defaults; those that change no size are not judged.
ModelFile read_model_file(const std::string& path);

}  // namespace gxp
