// Checkpoint formats, one row each. A conversion reads with one row and writes with another.
//
// One more format is one new file, one row in table.cc and one line in CMakeLists.txt.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

struct WriteOptions {
  uint64_t shard_bytes = 5'000'000'000;  // largest file of a sharded directory; 5 GB, as the Hub's
  bool replace = false;                  // an existing checkpoint at that path
};

struct CheckpointFormat {
  std::string_view name;
  std::string_view summary;
  // By content, or by name where the content may be damaged. Never throws for what is not there.
  bool (*recognises)(const std::string& path);
  // Whether write() gives files in a directory such a name.
  bool (*owns)(std::string_view name);
  NamedTensors (*read)(const std::string& path);
  // `path` does not exist, its parent does. nullptr: gxp only reads the format, and the summary says
  // what to write instead.
  void (*write)(const NamedTensors& tensors, const std::string& path, const WriteOptions& options);
  // Checks the contents of all files against recorded hashes; returns how many files that were.
  // nullptr: the format records none, and reading has checked all that can be.
  uint64_t (*verify)(const std::string& path);
  bool keeps_optimizer_state;
};

// Asked in this order.
extern const std::span<const CheckpointFormat> kFormats;

// Of those that are written.
std::vector<std::string> format_names();
// The format to write. kUsage with a near match for an unknown name, and for one that is only read.
const CheckpointFormat& find_format(const std::string& name);
// The format of what is at `path`. kIo: nothing is; kCorrupt: no format recognises it.
const CheckpointFormat& format_at(const std::string& path);

// Reads headers only; elements are read when asked for. Errors: kIo, kCorrupt.
NamedTensors read_checkpoint(const std::string& path);

// As read_checkpoint(), with the names that gxp's models use: what `model.init` is loaded from.
NamedTensors read_weights(const std::string& path);

// Writes ".partial-NAME" next to `path` and renames, so that `path` is complete or absent; on an
// error nothing is left. What a killed conversion left there is cleared, or taken back if it is
// what `path` was before (replace_path() in file.h). kUsage: `path` exists and is not to be
// replaced, or it, or what lies at one of those names, is no checkpoint or holds something that no
// format writes. Cost: one tensor's buffer of 4 MiB, whatever the size of the checkpoint.
void write_checkpoint(const NamedTensors& tensors, const CheckpointFormat& format,
                      const std::string& path, const WriteOptions& options);

}  // namespace gxp
