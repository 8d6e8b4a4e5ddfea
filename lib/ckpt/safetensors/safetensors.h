// safetensors files: u64 n, n bytes of JSON, then the tensors' bytes to the end of the file.
// Source: huggingface/safetensors 0.8, README.md and safetensors/src/tensor.rs; the index of
// sharded files: huggingface_hub, serialization/_base.py.
//
// Files are hostile until checked: the header lies in the file and has at most 10^8 bytes; names
// and JSON keys are unique; types and shapes are known and their product does not overflow; the
// tensors cover the rest of the file exactly, without overlaps, holes or a tail. Unlike the
// reference, gxp also refuses a key that occurs twice, empty names, names with a NUL and more than
// 64 dimensions.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/format.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

struct SafetensorsHeader {
  struct Entry {
    TensorInfo info;
    uint64_t offset = 0;  // in the file
  };
  std::vector<Entry> entries;  // in the order of the bytes
  std::map<std::string, std::string> metadata;
};

// `json` is the header of a file of `file_bytes` bytes. kCorrupt names `file` and the tensor.
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t file_bytes,
                                           const std::string& file);

// Whether `path` is a .safetensors file (by name or content), an index, or a directory with
// model.safetensors, model.safetensors.index.json (weight_index.h) or the files of
// safetensors_shards.h.
bool is_safetensors(const std::string& path);
// Whether write_safetensors_directory() gives files such a name.
bool is_safetensors_file(std::string_view name);
NamedTensors read_safetensors(const std::string& path);

// The weights as one file, in the order and with the bytes of the reference writer. Optimizer state
// is left out. `metadata` gets "format": "pt", which some readers ask for.
void write_safetensors_file(const NamedTensors& tensors, const std::string& path);

// The weights as DIR/model.safetensors, or, if they exceed options.shard_bytes, as files of up to
// so many bytes of tensors (a larger tensor has a file of its own) and an index; or as exactly
// options.shards files of about equal size. DIR is made, or entered (FinishedFiles). kUsage: there
// are fewer tensors than shards.
void write_safetensors_directory(const NamedTensors& tensors, const std::string& directory,
                                 const WriteOptions& options);

// The files that these two would write; `path` decides, by its end, which of them.
std::vector<PlannedFile> plan_safetensors(const NamedTensors& tensors, const std::string& path,
                                          const WriteOptions& options);

}  // namespace gxp
