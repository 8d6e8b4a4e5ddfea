// Writes a checkpoint in gxp's own format, so that at every moment a reader finds the old complete
// checkpoints or also the new one, and never a half.
//
//   every rank  CheckpointWriter writer(dir, {step, rank, world_size});
//               writer.add(...) for what this rank owns; FilePart part = writer.finish();
//   gather      to_json(part) of all ranks to rank 0: this is also the barrier
//   rank 0      publish_checkpoint(dir, parts, info, retention);
//
// Files are written to DIR/.step-00000010.partial/, hashed on the way and made durable. Publishing
// checks that all of them exist, writes the manifest, makes it and the directory durable, renames
// the directory to step-00000010 and makes the rename durable; then older checkpoints and stale
// partial directories are removed, as far as they are gxp's (own_files.h). A tensor that several
// ranks hold is added by one of them, or by each of them in part.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/ckpt/file.h"
#include "lib/ckpt/native/manifest.h"
#include "lib/ckpt/own_files.h"

namespace gxp {

struct WriterRank {
  uint64_t step = 0;
  int rank = 0;
  int world_size = 1;
  bool frozen = false;  // a file of its own, for what is not trained
};

// Writes one of a rank's files. Errors: kIo, naming path, bytes and the system's reason; the
// partial directory is removed then, with what other ranks have put there: the checkpoint cannot
// complete. kPeer: another rank that failed has removed the directory or the file.
// Without finish(), the destructor removes the file.
class CheckpointWriter {
 public:
  CheckpointWriter(const std::string& dir, const WriterRank& rank);
  ~CheckpointWriter();

  // Elements [begin, begin + count) of a tensor with this global shape; `data` is host memory of
  // count elements, row-major. An element is added once over all ranks; in any order.
  void add(const TensorInfo& info, uint64_t begin, ConstMemory data);
  // Makes the file durable. The last call. One with the bytes that it has in the newest complete
  // checkpoint becomes another name of that (unchanged_file.h).
  FilePart finish();

 private:
  template <class Act>
  auto or_abandon(Act act);
  LogicalTensor& tensor_of(const TensorInfo& info);

  std::string dir_;
  OwnDirectory directory_;  // the partial one
  FilePart part_;
  std::unique_ptr<OutputFile> file_;
};

// The complete checkpoints that stay when another one is published.
struct Retention {
  int newest = 0;        // the new one, and with it so many of the highest steps; 0: all
  int multiples_of = 0;  // and those whose step is a multiple of this; 0: none
};

// Completes the checkpoint of info.step and returns its path, then prunes the others. A complete
// checkpoint of the same step is replaced. Errors: kIo as above, or a file of `parts` is not in the
// directory with its size, as where hosts do not share it; kInternal if the parts miss or repeat an
// element or disagree about a tensor. After an error the older checkpoints are as they were. An
// older one that cannot be removed is a warning.
std::string publish_checkpoint(const std::string& dir, std::span<const FilePart> parts,
                               const CheckpointInfo& info, const Retention& retention);

// Removes what killed runs have left: partial directories, and checkpoints that were being removed.
// No rank writes a checkpoint meanwhile.
void remove_stale(const std::string& dir);

// Removes the complete checkpoint of `step`, which loses its name first, so that none is ever seen
// half. Returns what is left and why, "" if all is gone. kIo if it cannot be looked at.
std::string remove_checkpoint(const std::string& dir, uint64_t step);

}  // namespace gxp
