// The replicas in a host's directory: of each step the files of this host's ranks and of its
// neighbour's, each with a text that says what is in it.
//
//   DIR/.step-00000010.partial/shard-00001-of-00004.bin     as in a checkpoint
//                              part-00001-of-00004.json     a ReplicaPart
//   and frozen-... of both, for what is not trained
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "lib/ckpt/native/writer.h"

namespace gxp {

// One file of a replica.
struct ReplicaPart {
  std::string job;  // the attempt that has written it
  uint64_t step = 0;
  int rank = 0;  // of world_size, and so is the number of files
  int world_size = 1;
  bool frozen = false;
  int files_of_a_rank = 1;
  std::string content;  // to_json() of a FilePart
  std::string info;     // to_json() of a Manifest that has only CheckpointInfo; the same for all

  auto fields() {
    return std::tie(job, step, rank, world_size, frozen, files_of_a_rank, content, info);
  }
};

// Bytes of a part's text, as of a manifest.
inline constexpr uint64_t kMaxPartTextBytes = uint64_t{1} << 30;

// Threads: const functions from any.
class HostReplicas {
 public:
  explicit HostReplicas(std::string directory) : directory_(std::move(directory)) {}

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] std::string path(uint64_t step) const;  // of the step's directory
  // Says that the part's file is there, whole. kIo.
  void add(const ReplicaPart& part) const;
  // The step's part, which is there, belongs to another step as well: it has not changed. kIo.
  void link(const ReplicaPart& part, uint64_t step) const;
  // All that are whole. kIo, kCorrupt.
  [[nodiscard]] std::vector<ReplicaPart> parts() const;
  // Removes the other steps. kIo.
  void keep_only(const std::vector<uint64_t>& steps) const;

 private:
  std::string directory_;
};

// Its file's name.
std::string data_file_of(const ReplicaPart& part);

// Its two files, "DIR/FILE", below the host's directory. The second says that the first is whole.
std::vector<std::string> files_of(const ReplicaPart& part);

}  // namespace gxp
