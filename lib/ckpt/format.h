// Checkpoint formats, one row each. A conversion reads with one row and writes with another.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/named_tensors.h"

namespace gxp {

struct WriteOptions {
  uint64_t shard_bytes = 5'000'000'000;  // largest file of a sharded directory; 5 GB, as the Hub's
  bool replace = false;                  // an existing checkpoint at that path
  size_t shards = 0;                     // so many files, whatever their size; 0: by shard_bytes
  // Go on where an earlier attempt at the same conversion was interrupted, and keep what is
  // complete if this one fails: whole files, of formats that takes_shards.
  bool resume = false;
  bool drop_optimizer = false;  // write the weights alone
  std::string conversion = {};  // one line that identifies the conversion: source and options
  // Called when all is written, before it has its name. If it throws, it leaves no files behind.
  std::function<void()> confirm = {};
};

// A file that a conversion would write.
struct PlannedFile {
  std::string name;  // in the target directory, or the target
  uint64_t tensors = 0;
  std::optional<uint64_t> bytes = {};  // nothing where it is known only when it is written
};

struct CheckpointFormat {
  std::string_view name;
  std::string_view summary;
  // By content, or by name where the content may be damaged. Never throws for missing files.
  bool (*recognises)(const std::string& path);
  // Whether write() gives files in a directory such a name.
  bool (*owns)(std::string_view name);
  NamedTensors (*read)(const std::string& path);
  // Throws kConfig if the format cannot hold this model, before anything is written. nullptr: it
  // holds any.
  void (*check_fits)(const NamedTensors& tensors) = nullptr;
  // `path` does not exist, its parent does. nullptr: gxp only reads the format, and the summary
  // says what to write instead.
  void (*write)(const NamedTensors& tensors, const std::string& path, const WriteOptions& options);
  // Checks the contents of all files against recorded hashes; returns how many files that were.
  // nullptr: the format records none, and reading has checked all that can be.
  uint64_t (*verify)(const std::string& path) = nullptr;
  bool keeps_optimizer_state = false;
  bool needs_steps = false;   // whether moments are written with their step, which must be known
  bool takes_shards = false;  // whether write() heeds shard_bytes and shards
  // The files that write() would create; nullptr: unknown.
  std::vector<PlannedFile> (*plan)(const NamedTensors& tensors, const std::string& path,
                                   const WriteOptions& options) = nullptr;
  bool keeps_tokenizer = false;  // and the other companions of NamedTensors
};

// Asked in this order.
extern const std::span<const CheckpointFormat> kFormats;

// The names of the formats that gxp writes.
std::vector<std::string> format_names();
// The formats among these whose checkpoints are always a single file.
std::vector<std::string> file_format_names();
// The format to write. kUsage with a near match for an unknown name, and for one that is only read.
const CheckpointFormat& find_format(const std::string& name);
// The format of what is at `path`. kIo: nothing is; kCorrupt: no format recognises it.
const CheckpointFormat& format_at(const std::string& path);

// The path of a checkpoint: `path`, or, of a directory that is none itself and holds checkpoints
// whose names differ by a number at their end alone (checkpoint-500, step-500), the one with the
// highest number, and the log says which. kCorrupt: it holds others, so that there is no such one.
std::string checkpoint_at(const std::string& path);

// What is at checkpoint_at(path). Reads headers only; elements are read when asked for. Errors: kIo,
// kCorrupt.
NamedTensors read_checkpoint(const std::string& path);

// As read_checkpoint(), with the names that gxp's models use, without what wrappers put into them
// (huggingface/wrapped_names.h), and what a config.json beside a single file records of its model:
// what `model.init` is loaded from.
NamedTensors read_weights(const std::string& path);

// Writes ".partial-NAME" next to `path` and renames, so that `path` is complete or absent; on an
// error nothing is left, except, with options.resume, the complete files. Leftovers of a killed
// conversion are removed, or restored if they are the previous content of `path` (replace_path() in
// file.h). kConfig: the format cannot hold the model, or the source's optimizer says what gxp
// cannot keep (OptimizerRecord::lost). kUsage: `path` exists and is not to be replaced, or it, or
// what lies at one of those names, is no checkpoint or holds something that no format writes. Cost:
// four buffers of 4 MiB, whatever the size of the checkpoint, and a thread that reads ahead.
void write_checkpoint(const NamedTensors& tensors, const CheckpointFormat& format,
                      const std::string& path, const WriteOptions& options);

// What write_checkpoint() would write. Changes no file, and fails where write_checkpoint() would
// refuse `path` or the tensors; it cannot foresee a full disk or damaged contents.
std::vector<PlannedFile> plan_checkpoint(const NamedTensors& tensors,
                                         const CheckpointFormat& format, const std::string& path,
                                         const WriteOptions& options);

}  // namespace gxp
