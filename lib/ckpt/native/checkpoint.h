// Reads a checkpoint in gxp's own format, at any world size: each rank requests the elements that
// it owns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/ckpt/file.h"
#include "lib/ckpt/format.h"
#include "lib/ckpt/native/manifest.h"
#include "lib/ckpt/native/step_directory.h"

namespace gxp {

// Threads: const functions from any. Cost: the manifest in memory; a data file is open only while
// it is read, so that thousands of them are no matter.
class Checkpoint {
 public:
  // `path` is a step directory, or one that holds step directories, of which the newest complete
  // one is taken. kIo: there is none, or this cannot be determined (see complete_steps()), or a
  // data file is missing; kCorrupt: the manifest or the size of a data file is wrong. Contents are
  // not hashed: see verify().
  static Checkpoint open(const std::string& path);
  // Of data files in `path`, of which this process may lack some; the others are only listed. The
  // manifest is one that check_manifest() accepts.
  static Checkpoint of_parts(std::string path, Manifest manifest) {
    return {std::move(path), std::move(manifest)};
  }

  [[nodiscard]] const std::string& path() const { return path_; }  // the step directory
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  // nullptr if it holds no such tensor.
  [[nodiscard]] const LogicalTensor* find(const std::string& name, Role role) const;
  // Fills `out`, host memory of a whole number of elements, with the elements from `begin` on.
  // Reads nothing else. kCorrupt if there is no such tensor or it is shorter than that.
  void read(const std::string& name, Role role, uint64_t begin, Memory out) const;
  void read(const LogicalTensor& tensor, uint64_t begin, Memory out) const;
  // Reads every part-th of `parts` data files whole and compares its hash with the manifest's.
  // kCorrupt names the file, the expected and the found hash.
  void verify(int part = 0, int parts = 1) const;

 private:
  friend class DataFileReader;
  explicit Checkpoint(std::string path);
  Checkpoint(std::string path, Manifest manifest)
      : path_(std::move(path)), manifest_(std::move(manifest)) {}
  // Opens a data file; `file` is an index into the manifest's files. kCorrupt if the file's size
  // has changed.
  [[nodiscard]] InputFile open_file(size_t file) const;

  std::string path_;
  Manifest manifest_;
};

// Reads a data file sequentially and hashes it.
class DataFileReader {
 public:
  // `file`: an index into the manifest's. The checkpoint outlives it. Errors: as Checkpoint::open.
  DataFileReader(const Checkpoint& checkpoint, size_t file);
  [[nodiscard]] size_t file() const { return file_; }
  [[nodiscard]] uint64_t bytes_left() const { return input_.bytes() - done_; }
  // Fills `out`, host memory, with the next bytes. After the last ones: kCorrupt if the hash is not
  // the manifest's, naming the file, the expected and the found hash.
  void read(Memory out);

 private:
  const Checkpoint& checkpoint_;
  size_t file_;
  InputFile input_;
  uint64_t done_ = 0;
  Hasher hasher_;
};

// Whether `path` is or contains a step directory. kIo if it is a directory and this cannot be
// determined.
bool is_gxp_checkpoint(const std::string& path);
NamedTensors read_gxp_checkpoint(const std::string& path);
// The checkpoint, which outlives it, as every format presents one.
NamedTensors tensors_of(const Checkpoint& checkpoint);

// `path` becomes a directory with one complete checkpoint of all tensors and settings, in the
// number of files that the options request.
void write_gxp_checkpoint(const NamedTensors& tensors, const std::string& path,
                          const WriteOptions& options);
// The files that it would write.
std::vector<PlannedFile> plan_gxp_checkpoint(const NamedTensors& tensors,
                                             const WriteOptions& options);

}  // namespace gxp
