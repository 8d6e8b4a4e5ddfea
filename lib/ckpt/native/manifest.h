// The manifest of a checkpoint in gxp's own format; docs/FORMAT.md has its grammar and an example.
//
// A step directory holds manifest.json and the data files it names. Tensors are logical: a name and
// a global shape; a list of pieces locates their elements, so that readers do not depend on the
// world size and the strategy of the writer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/ckpt/named_tensors.h"

namespace gxp {

// Elements [begin, begin + count) of a tensor, one after the other in a file.
struct Piece {
  uint32_t file = 0;         // index into Manifest::files
  uint64_t file_offset = 0;  // bytes
  uint64_t begin = 0;
  uint64_t count = 0;
};

struct LogicalTensor {
  TensorInfo info;
  std::vector<Piece> pieces;  // by `begin`; together each element exactly once
};

struct DataFile {
  std::string name;  // in the manifest's folder
  uint64_t bytes = 0;
  std::string hash;  // hash_hex() of the content
};

// The trainer's facts about a checkpoint.
struct CheckpointInfo {
  uint64_t step = 0;              // 0: not known, as of converted weights
  uint64_t samples_consumed = 0;  // by all ranks: where the data goes on; 0: not known
  int world_size = 1;             // of the run that wrote it
  std::string strategy;           // parallel.strategy
  KeyValues config;               // all settings of the run
  KeyValues state;                // free: what else the trainer needs to go on
};

struct Manifest {
  CheckpointInfo info;
  std::string gxp_version;
  std::vector<DataFile> files;
  std::vector<LogicalTensor> tensors;
};

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 30;

// JSON that ends with a hash of itself.
std::string to_json(const Manifest& manifest);

// kCorrupt, naming `path`: a changed byte (with the hash that was expected and the one found),
// another format or version, a field of the wrong type, or what check_manifest() refuses.
Manifest parse_manifest(std::string_view text, const std::string& path);

// Throws `kind` if a file name is no plain name or occurs twice, a tensor occurs twice or
// overflows, the pieces of a tensor overlap, leave a hole, or reach behind their file, or a byte of
// a file belongs to no piece or to two.
void check_manifest(const Manifest& manifest, ErrorKind kind, const std::string& path);

// What one rank wrote, for the rank that writes the manifest; Piece::file is 0 in it.
struct FilePart {
  DataFile file;
  std::vector<LogicalTensor> tensors;
};
std::string to_json(const FilePart& part);
FilePart parse_file_part(std::string_view text);
// The tensors of all parts in the order of first appearance, their pieces in order; Piece::file
// counts the parts. kInternal: parts disagree about a tensor.
std::vector<LogicalTensor> merge_parts(std::span<const FilePart> parts);

}  // namespace gxp
